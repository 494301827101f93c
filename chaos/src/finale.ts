// The end of a run: everything is mended, and the queue must come to rest by itself. Then the encore, in which one worker dies while
// all else is well. What is left to do is read from the raw keys.
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { Actor } from './cast.js';
import { Journal, JournalReader, files } from './evidence.js';
import type { FaultLine, LedgerLine, ProducerLine } from './evidence.js';
import type { Observer } from './observer.js';
import type { Stage } from './stage.js';
import type { Work } from './work.js';

const quietLooks = 3;
const lookEveryMs = 100;
const encoreJobs = 6;
/** So long each of them runs: until all have started and one worker is killed. */
const encoreMs = 3_000;
/** No promise: a machine may stand still for a second or two, and the observer writes that down. */
const startWithinMs = 20_000;

/** Waits until nothing is left to do, by the raw keys; returns what is left when it takes too long. */
export async function drain(
  stage: Stage,
  queue: string,
  observer: Observer,
  actors: readonly Actor[],
  limitMs: number,
): Promise<string | undefined> {
  const deadline = Date.now() + limitMs;
  let quiet = 0;
  for (;;) {
    let left: string;
    try {
      left = await leftToDo(stage, queue, observer, actors);
    } catch (error) {
      left = String(error);
    }
    quiet = left === '' ? quiet + 1 : 0;
    if (quiet === quietLooks) return undefined;
    if (Date.now() > deadline) return left;
    await sleep(lookEveryMs);
  }
}

const lists = ['inbox', 'suspects', 'chained', ...[0, 1, 2, 3, 4, 5].map((priority) => `wait:${priority}`)];
const hashes = ['blocked', 'chains', 'groups'];
const sorted = ['delayed', 'rescuing', 'ticks'];
/** Of a live session: its description and two lanes. */
const sessionFields = 3;

async function leftToDo(
  stage: Stage,
  queue: string,
  observer: Observer,
  actors: readonly Actor[],
): Promise<string> {
  const raw = stage.raw as Redis;
  const left: string[] = [];
  const count = (what: string, many: number) => many > 0 && left.push(`${many} in ${what}`);
  for (let partition = 0; partition < stage.partitions; partition++) {
    const base = `sluice:{${queue}:${partition}}:`;
    await Promise.all([
      ...lists.map(async (name) => count(name, await raw.llen(base + name))),
      ...hashes.map(async (name) => count(name, await raw.hlen(base + name))),
      ...sorted.map(async (name) => count(name, await raw.zcard(base + name))),
    ]);
    for (const session of await raw.zrange(`${base}sessions`, '0', '-1')) {
      const key = `${base}active:${session}`;
      count(`active:${session}`, (await raw.hlen(key)) - sessionFields);
      const lanes = await raw.hmget(key, '#0', '#1');
      count(`sheaves of ${session}`, lanes.filter((lane) => lane?.includes('=')).length);
    }
  }
  const living = new Set(actors.map(({ pid }) => pid));
  for (const { session, pid } of observer.present)
    if (!living.has(pid)) left.push(`session ${session} of a dead process`);
  return left.join(', ');
}

/**
 * When all is quiet again, a few jobs start, and the worker that has most of them is killed: with nothing else in the way,
 * each of them must be claimed again within lease + 1 s.
 */
export async function encore(
  stage: Stage,
  queue: string,
  actors: readonly Actor[],
  folder: string,
  log: Journal<FaultLine>,
): Promise<string[]> {
  const accepted = new Journal<ProducerLine>(join(folder, files.producer('encore')));
  for (let i = 1; i <= encoreJobs; i++) {
    const work: Work = { key: `encore-${i}`, kind: 'slow', ms: encoreMs };
    accepted.write({ e: 'intent', at: Date.now(), key: work.key, kind: work.kind, remembered: true });
    const inbox = `sluice:{${queue}:${i % stage.partitions}}:inbox`;
    await (stage.raw as Redis).rpush(inbox, JSON.stringify({ data: work, id: work.key }));
    accepted.write({ e: 'accepted', at: Date.now(), key: work.key, id: work.key, ours: true });
  }
  accepted.close();
  const reader = new JournalReader<LedgerLine>(join(folder, files.ledger));
  const runs: LedgerLine[] = [];
  for (const deadline = Date.now() + startWithinMs; runs.length < encoreJobs; await sleep(lookEveryMs)) {
    runs.push(...reader.read().filter(({ e, key }) => e === 'run' && key.startsWith('encore-')));
    if (Date.now() > deadline)
      return [`only ${runs.length} of ${encoreJobs} jobs started within ${startWithinMs} ms`];
  }
  const counts = new Map<number, number>();
  for (const { pid } of runs) counts.set(pid, (counts.get(pid) ?? 0) + 1);
  const [busiest] = [...counts].sort(([, a], [, b]) => b - a)[0]!;
  const from = Date.now();
  actors.find(({ pid }) => pid === busiest)?.signal('SIGKILL');
  log.write({ f: 'fault', name: 'encore', pid: busiest, from, to: from });
  return [];
}
