// How a program in any language adds a job: it pushes a JSON object to the queue's inbox list, for example
//
//   RPUSH 'sluice:{mail:0}:inbox' '{"data": {"to": "ada@example.com"}, "priority": 1}'
//
// Workers take messages from there within a second. A message stays in the inbox until the same script that makes it a job
// removes it. Its bytes are kept as they are (Lua would turn [] into {} and round large integers); a message that cannot be
// understood goes to the dead letters, also with its bytes.
//
// A foreign producer need not know of partitions: every inbox serves. A message whose own id, unique key or group belongs to
// another partition is added there first, under an id that is made of its place in the inbox, and then removed here. Whoever is
// interrupted in between adds it again under the same id, which adds it once.
import { failPoint } from '@sluice/base';
import { buryDetail } from './dead.js';
import { withOwnId } from './durability.js';
import type { NewJob } from './call.js';
import { queueErrors } from './errors.js';
import { describeError } from './fingerprint.js';
import { IdMaker } from './ids.js';
import { prepareOptions } from './options.js';
import type { AddOptions } from './options.js';
import { flag } from './packed.js';
import type { Partition } from './partition.js';
import type { AnyQueue } from './queue.js';

const messagesPerCall = 100;
const ids = new IdMaker();

/** What a foreign message may say beside its data. */
const allowed = [
  'id',
  'rememberMs',
  'delayMs',
  'runAt',
  'priority',
  'unique',
  'group',
  'attempts',
  'backoff',
  'timeoutMs',
  'keepResultMs',
  'labels',
];

export async function takeInbox(queue: AnyQueue, partition: Partition): Promise<void> {
  for (;;) {
    const [taken, ...messages] = (await partition.run('peek', { count: messagesPerCall })) as Buffer[];
    if (messages.length === 0) return;
    failPoint('inbox.peeked');
    const jobs = messages.map((message) => toJob(queue, message, partition.clock.nowMs()));
    const inbox = { taken: taken!.toString(), count: messages.length };
    const isAtHome = (job: NewJob) =>
      job.dead !== undefined || !isBound(job) || queue.partitionOfJob(job) === partition;
    const strays = jobs.flatMap((job, i) => {
      if (isAtHome(job)) return [];
      const id = job.options.ownId ?? `inbox-${partition.index}-${Number(taken) + i}`;
      return [withOwnId({ ...job, id })];
    });
    await Promise.all(strays.map((job) => queue.producerFor(queue.partitionOfJob(job)).addApart([job], {})));
    failPoint('inbox.strayed');
    // When somebody else took them in the meantime the script says so and changes nothing: look again.
    await queue.producerFor(partition).addApart(jobs.filter(isAtHome), { inbox });
    failPoint('inbox.taken');
  }
}

/** Belongs to one partition, because others of its kind have to be met there. */
function isBound({ options }: NewJob): boolean {
  return options.group !== undefined || options.uniqueKey !== '' || options.ownId !== undefined;
}

function toJob(queue: AnyQueue, message: Buffer, nowMs: number): NewJob {
  try {
    return understand(queue, message);
  } catch (error) {
    const dead = buryDetail(describeError(error), 'inbox', nowMs, 0);
    return { id: ids.next(), payload: message, flags: flag.binary, options: prepareOptions(undefined), dead };
  }
}

function understand(queue: AnyQueue, message: Buffer): NewJob {
  const maxBytes = queue.options.maxPayloadBytes ?? 1024 * 1024;
  if (message.length > maxBytes) throw queueErrors.PAYLOAD_TOO_LARGE({ bytes: message.length, maxBytes });
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(message));
  } catch (error) {
    throw queueErrors.MALFORMED({ reason: error instanceof Error ? error.message : String(error) });
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, 'data')) {
    throw queueErrors.MALFORMED({ reason: 'it must be a JSON object with a "data" field' });
  }
  const { data: _, ...rest } = value as Record<string, unknown>;
  for (const name of Object.keys(rest)) {
    if (!allowed.includes(name))
      throw queueErrors.MALFORMED({
        reason: `"${name}" is not known; allowed are data, ${allowed.join(', ')}`,
      });
  }
  const options = rest as AddOptions;
  const prepared = prepareOptions(options);
  return { id: options.id ?? ids.next(), payload: message, flags: flag.foreign, options: prepared };
}
