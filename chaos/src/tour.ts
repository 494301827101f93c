// The tour: every named fail point is met once, with a kill -9. Most points lie on everybody's way; the others need a reason to be
// met, which is given to the process that waits there: a stop for those in the shutdown, a freeze for a lost lease, silence for an
// outcome that stays unknown, a job that hangs for the heartbeat thread. A process that waits too long is killed, and another
// one gets another point.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { Armory } from './armory.js';
import type { Actor } from './cast.js';
import type { Journal, ProducerLine } from './evidence.js';
import type { Scene } from './faults.js';
import type { Work } from './work.js';

const lookEveryMs = 100;
/** Longer than the longest wait that is normal: a worker sweeps after five seconds. */
const patienceMs = 15_000;
const silenceMs = 2_600;

/** Resolves with the points that were not met before the deadline. */
export async function tour(
  scene: Scene,
  armory: Armory,
  queue: string,
  log: Journal<ProducerLine>,
  isWorking: (actor: Actor) => boolean,
  deadlineMs: number,
): Promise<string[]> {
  const provoked = new Set<string>();
  const underWay: Promise<void>[] = [];
  let hanging = 0;
  while (armory.unmet().length > 0 && Date.now() < deadlineMs) {
    for (const [actor, { point, sinceMs }] of armory.assigned) {
      const { pid } = actor;
      if (Date.now() - sinceMs > patienceMs) actor.signal('SIGKILL');
      if (pid === undefined || provoked.has(`${pid} ${point}`) || !isWorking(actor)) continue;
      provoked.add(`${pid} ${point}`);
      if (point.startsWith('hang.')) await pushHanging(scene, queue, log, `hanging-${++hanging}`);
      else underWay.push(provoke(scene, actor, pid, point));
    }
    await sleep(lookEveryMs);
  }
  await Promise.all(underWay);
  return armory.unmet();
}

async function provoke(scene: Scene, actor: Actor, pid: number, point: string): Promise<void> {
  const from = Date.now();
  const note = (name: string) => scene.faults.write({ f: 'fault', name, from, to: Date.now(), pid });
  if (/^(stop|close)\./.test(point)) return actor.replace();
  if (point.startsWith('lease.')) {
    actor.signal('SIGSTOP');
    await sleep(scene.leaseMs + 700);
    if (actor.pid === pid) actor.signal('SIGCONT');
    note('stop');
  }
  if (point.startsWith('repeat.') && actor.proxy) {
    actor.proxy.blackHole(true);
    await sleep(silenceMs);
    actor.proxy.blackHole(false);
    actor.proxy.cut();
    note('blackhole');
  }
}

/** Any worker may get it: all of them are armed with these points. */
async function pushHanging(
  scene: Scene,
  queue: string,
  log: Journal<ProducerLine>,
  key: string,
): Promise<void> {
  const work: Work = { key, kind: 'hanging', ms: 60_000 };
  log.write({ e: 'intent', at: Date.now(), key, kind: work.kind, remembered: true });
  const message = {
    data: work,
    id: key,
    timeoutMs: 1_000,
    backoff: { type: 'fixed', delayMs: 50 },
    priority: 0,
  };
  await (scene.stage.raw as Redis).rpush(`sluice:{${queue}:0}:inbox`, JSON.stringify(message));
  log.write({ e: 'accepted', at: Date.now(), key, id: key, ours: true });
}
