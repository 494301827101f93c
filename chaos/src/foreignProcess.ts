// A producer in another language, as far as Redis can tell: it knows one command and the name of one list. Each message has an id of
// its own, so that it may be pushed again when no answer came. Some messages are not JSON.
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { RedisLink } from '@sluice/redis';
import { Journal, files } from './evidence.js';
import type { ProducerLine } from './evidence.js';
import { readPart } from './part.js';
import { Random } from '@sluice/testbed/random';
import type { Work } from './work.js';

const malformedShare = 0.05;
const pushDeadlineMs = 1_000;
const paceMs = 100;

const part = readPart();
const log = new Journal<ProducerLine>(join(part.folder, files.producer(`${part.name}-${process.pid}`)));
const random = new Random(`${part.seed} ${part.name} ${process.pid}`);
const link = new RedisLink(part.redis, { name: 'foreign' });
let count = 0;
let stopping = false;

process.once('SIGTERM', () => {
  stopping = true;
});

while (!stopping) {
  const partition = random.between(0, part.partitions - 1);
  const inbox = `sluice:{${part.queue}:${partition}}:inbox`;
  const key = `${part.name}-${process.pid}-${++count}`;
  if (random.chance(malformedShare)) await pushMalformed(inbox, key);
  else await pushJob(inbox, key);
  await sleep(paceMs * (0.5 + random.next()));
}
link.close();
process.exit(0);

async function pushJob(inbox: string, key: string): Promise<void> {
  const work: Work = { key, kind: 'quick', ms: random.between(0, 10) };
  log.write({ e: 'intent', at: Date.now(), key, kind: work.kind, remembered: true });
  while (!(await push(inbox, JSON.stringify({ data: work, id: key })))) {
    log.write({ e: 'unknown', at: Date.now(), key, code: 'no answer', id: key });
    if (stopping) return;
  }
  log.write({ e: 'accepted', at: Date.now(), key, id: key, ours: true });
}

async function pushMalformed(inbox: string, key: string): Promise<void> {
  const text = `{"data": ${key}`;
  log.write({ e: 'malformed', at: Date.now(), text, answered: false });
  if (await push(inbox, text)) log.write({ e: 'malformed', at: Date.now(), text, answered: true });
}

async function push(inbox: string, message: string): Promise<boolean> {
  try {
    await link.call('RPUSH', [inbox, message], { deadlineMs: pushDeadlineMs });
    if (part.replicas === 0) return true;
    return (
      Number(await link.once('WAIT', [part.replicas, pushDeadlineMs], 2 * pushDeadlineMs)) >= part.replicas
    );
  } catch {
    return false;
  }
}
