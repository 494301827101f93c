// A producer: adds jobs of all shapes at a steady pace, and writes down what it meant to add, what was accepted, and what nobody
// answered. An add without an answer is repeated, as its error says, until its outcome is known.
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { consoleLogger, isSluiceError } from '@sluice/base';
import { Queue } from '@sluice/queue';
import type { AddOptions } from '@sluice/queue';
import { Journal, files } from './evidence.js';
import type { ProducerLine } from './evidence.js';
import { readPart } from './part.js';
import { Random } from '@sluice/testbed/random';
import { drawJob } from './work.js';
import type { Draw, Work } from './work.js';

/** Shorter than an outage, so that some outcomes are unknown. */
const addDeadlineMs = 2_000;
const maxUnderWay = 400;
const rememberedIds = 50;
const burstJobs = 300;
const finishWithinMs = 15_000;
const pauseMs = 50;

const part = readPart();
const log = new Journal<ProducerLine>(join(part.folder, files.producer(`${part.name}-${process.pid}`)));
const random = new Random(`${part.seed} ${part.name} ${process.pid}`);
const { redis, partitions } = part;
const queue = new Queue<Work>(part.queue, { redis, partitions, addDeadlineMs, logger: consoleLogger() });
const owned: string[] = [];
const underWay = new Set<Promise<void>>();
let count = 0;
let stopping = false;

process.once('SIGTERM', () => {
  stopping = true;
});

while (!stopping) {
  const jobs = random.chance(part.burstShare) ? burstJobs : random.between(1, 4);
  if (underWay.size < maxUnderWay) {
    if (jobs === burstJobs) hold(addBurst(jobs));
    else for (let i = 0; i < jobs; i++) hold(addOne(draw()));
  }
  await sleep((Math.min(jobs, 20) / part.perSecond) * 1_000 * (0.5 + random.next()));
}
await Promise.race([Promise.all(underWay), sleep(finishWithinMs)]);
await queue.close();
process.exit(0);

function hold(adding: Promise<void>): void {
  const held = adding.finally(() => underWay.delete(held));
  underWay.add(held);
}

function draw(plain = false): Draw {
  const key = `${part.name}-${process.pid}-${++count}`;
  return drawJob(random, key, { ...part.mix, plain: plain || part.mix.plain }, owned, part.queue);
}

function intend({ work, options, remembered }: Draw): void {
  const after = options.after?.map(({ id }) => id);
  log.write({
    e: 'intent',
    at: Date.now(),
    key: work.key,
    kind: work.kind,
    remembered,
    ...(after && { after }),
  });
}

async function addOne(drawn: Draw): Promise<void> {
  const { work } = drawn;
  let options: AddOptions = { ...drawn.options };
  if (part.replicas > 0 && !options.after) options.durability = { replicas: part.replicas, timeoutMs: 1_000 };
  intend(drawn);
  for (;;) {
    try {
      const { id, duplicate } = await queue.add(work, options);
      const ours = !duplicate || id === options.id;
      if (part.replicas > 0 && !options.durability) return unconfirmed(work.key);
      // The master that took over says that another job has the unique key; the one that was lost may have run this one before.
      if (part.replicas > 0 && !ours) return unconfirmed(work.key);
      log.write({ e: 'accepted', at: Date.now(), key: work.key, id, ours });
      if (ours && drawn.remembered) remember(id);
      return;
    } catch (error) {
      const code = isSluiceError(error) ? error.code : String(error);
      if (!isSluiceError(error) || !error.retryable) {
        log.write({ e: 'refused', at: Date.now(), key: work.key, code });
        return;
      }
      const { id, requestId } = (error.details ?? {}) as { id?: string; requestId?: string };
      log.write({
        e: 'unknown',
        at: Date.now(),
        key: work.key,
        code,
        ...(id && { id }),
        ...(requestId && { requestId }),
      });
      if (id !== undefined) options = { ...options, id };
      if (requestId !== undefined) options = { ...options, requestId };
      await sleep(pauseMs);
    }
  }
}

/** Many plain jobs in one call. If nobody answers, they stay unknown: then they may be there, but at most once. */
async function addBurst(jobs: number): Promise<void> {
  const drawn = Array.from({ length: jobs }, () => draw(true));
  drawn.forEach(intend);
  try {
    const added = await queue.addMany(drawn.map(({ work, options }) => ({ data: work, ...options })));
    added.forEach(({ id }, i) => {
      if (part.replicas > 0) return unconfirmed(drawn[i]!.work.key);
      log.write({ e: 'accepted', at: Date.now(), key: drawn[i]!.work.key, id, ours: true });
    });
  } catch (error) {
    const code = isSluiceError(error) ? error.code : String(error);
    for (const { work } of drawn) log.write({ e: 'unknown', at: Date.now(), key: work.key, code });
  }
}

/** The master has it; it may be lost with the master, and nobody promised otherwise. */
function unconfirmed(key: string): void {
  log.write({ e: 'unknown', at: Date.now(), key, code: 'unconfirmed' });
}

function remember(id: string): void {
  owned.push(id);
  if (owned.length > rememberedIds) owned.shift();
}
