// The snapshot of everything, as `status` and `top` show it. Each part is optional: a part that is down is left out by the server, and
// a server of another version may know other parts.
import { missedText } from './alertsCommand.js';
import { ago, bytes, count, counted, duration, percent } from './human.js';
import type { Attention, Overview, QueueSnapshot, RedisHealth } from './replies.js';

/** Names and values for people, those that are known. */
export function summaryOf({
  queues = [],
  workers,
  redis,
  retries,
  dead,
  uploads,
  outbox,
  cache,
}: Overview): [string, string][] {
  const sum = (pick: (queue: QueueSnapshot) => number): number =>
    queues.reduce((total, queue) => total + pick(queue), 0);
  const lines: [string, string][] = [];
  lines.push([
    'jobs',
    [
      `${count(sum(({ counts }) => counts.waiting))} waiting`,
      `${count(sum(({ counts }) => counts.active))} active`,
      `${count(sum(({ counts }) => counts.delayed))} delayed`,
      `${count(sum(({ counts }) => counts.dead))} dead`,
    ].join(', '),
  ]);
  lines.push(['workers', count(workers ?? sum(({ counts }) => counts.workers))]);
  if (retries) lines.push(['retries', retriesText(retries)]);
  if (dead && dead.letters > 0) lines.push(['dead letters', deadText(dead)]);
  if (uploads) lines.push(['uploads', `${count(uploads.open)} under way`]);
  if (outbox) lines.push(['events', outboxText(outbox)]);
  if (cache)
    lines.push([
      'cache',
      typeof cache.hitRate === 'number' ? `${percent(cache.hitRate)} hits` : 'not read yet',
    ]);
  if (redis) lines.push(['redis', redisLine(redis)]);
  return lines;
}

function retriesText({ count: waiting, complete, nextMs }: NonNullable<Overview['retries']>): string {
  if (nextMs === null) return 'none';
  return `${count(waiting)}${complete ? '' : ' or more'} waiting, the next ${ago(nextMs)}`;
}

function deadText({ letters, averageAttempts, topError }: NonNullable<Overview['dead']>): string {
  const runs = averageAttempts === null ? '' : `, ${counted(averageAttempts, 'run')} on average`;
  return `${count(letters)}${runs}${topError ? `, most of ${topError.title}` : ''}`;
}

function outboxText({ waiting, oldestMs }: NonNullable<Overview['outbox']>): string {
  const oldest = waiting > 0 && oldestMs ? `, the oldest for ${duration(oldestMs)}` : '';
  return `${count(waiting)} to be published${oldest}`;
}

export function redisLine({ version, usedBytes, maxBytes, opsPerSecond, clients }: RedisHealth): string {
  const limit = maxBytes > 0 ? ` of ${bytes(maxBytes)}` : '';
  return `${version}, ${bytes(usedBytes)}${limit}, ${count(opsPerSecond)} commands/s, ${count(clients)} clients`;
}

export function attentionText({ message, queue, target }: Attention): string {
  if (target) return missedText(target);
  return queue === undefined ? message : `${queue}: ${message}`;
}
