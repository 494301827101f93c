// What goes wrong; when, is drawn in `strikes.ts`. A strike breaks something, keeps it broken for a while, and mends it; what it did
// is written down with its times.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Actor } from './cast.js';
import type { Role } from './failPoints.js';
import type { Random } from '@sluice/testbed/random';
import type { Stage, Topology } from './stage.js';
import type { Fault, Pace, StruckScene } from './strikes.js';

export const usualPace: Pace = { firstStrikeMs: 700, pausesMs: [200, 800] };
/** A trap that nothing springs is given up. */
const trapMs = 600;

export interface Scene extends StruckScene {
  stage: Stage;
  actors: Actor[];
  leaseMs: number;
  /** Hashes of the scripts whose replies get lost, by who calls them. */
  losing: { role: Role; shas: string[] }[];
}

interface QueueFault extends Fault<Scene> {
  topologies: Topology[];
}

const everywhere: Topology[] = ['single', 'sentinel', 'cluster'];
const proxied: Topology[] = ['single'];

export const faults = {
  kill: {
    what: 'kill -9 of a worker',
    share: 3,
    topologies: everywhere,
    strike: async (scene, random) => signalOne(scene, random, 'worker', 'SIGKILL'),
  },
  replace: {
    what: 'SIGTERM of a worker, as in a deployment',
    share: 1,
    topologies: everywhere,
    strike: async (scene, random) => choose(scene, random, 'worker')?.replace(),
  },
  'kill-producer': {
    what: 'kill -9 of a producer or the operator',
    share: 1,
    topologies: everywhere,
    strike: async (scene, random) =>
      signalOne(scene, random, random.pick(['producer', 'producer', 'operator']), 'SIGKILL'),
  },
  stop: {
    what: 'SIGSTOP of a worker beyond its lease, then SIGCONT',
    share: 2,
    topologies: everywhere,
    strike: (scene, random) =>
      trouble(scene, random, 'worker', 'stop', async (actor) => {
        const { pid } = actor;
        actor.signal('SIGSTOP');
        await sleep(scene.leaseMs + random.between(500, 2_000));
        // A stopped process that was killed and replaced has no need of it.
        if (actor.pid === pid) actor.signal('SIGCONT');
      }),
  },
  block: {
    what: "a worker's event loop blocked beyond its lease",
    share: 1,
    topologies: everywhere,
    strike: (scene, random) =>
      trouble(scene, random, 'worker', 'block', async (actor) => {
        actor.signal('SIGUSR2');
        await sleep(scene.leaseMs * 1.4);
      }),
  },
  'kill-redis': {
    what: 'kill -9 of Redis, and its restart',
    share: 1,
    topologies: proxied,
    everybody: true,
    strike: (scene, random) => scene.stage.killRedis(random.between(50, 600)),
  },
  'stop-redis': {
    what: 'SIGSTOP of Redis for longer than a lease',
    share: 0.5,
    topologies: everywhere,
    everybody: true,
    strike: (scene, random) => scene.stage.pauseRedis(scene.leaseMs + random.between(300, 1_000)),
  },
  flush: {
    what: 'SCRIPT FLUSH',
    share: 1,
    topologies: everywhere,
    strike: (scene) => scene.stage.flushScripts(),
  },
  cut: {
    what: 'connections dropped',
    share: 2,
    topologies: everywhere,
    strike: async (scene, random) => {
      if (scene.stage.topology !== 'single') return scene.stage.dropConnections();
      if (random.chance(0.3)) for (const { proxy } of scene.actors) proxy?.cut();
      else random.pick(scene.actors).proxy?.cut();
    },
  },
  lose: {
    what: 'replies lost: carried out, never answered',
    share: 3,
    topologies: proxied,
    strike: loseReplies,
  },
  blackhole: {
    what: 'a connection that swallows everything',
    share: 1,
    topologies: proxied,
    strike: (scene, random) =>
      trouble(
        scene,
        random,
        random.pick(['worker', 'worker', 'producer']),
        'blackhole',
        async ({ proxy }) => {
          proxy!.blackHole(true);
          await sleep(random.between(300, scene.leaseMs * 1.5));
          proxy!.blackHole(false);
          // What was swallowed does not come back, so no byte may follow it.
          proxy!.cut();
        },
      ),
  },
  slow: {
    what: 'a slow link',
    share: 1,
    topologies: proxied,
    strike: (scene, random) =>
      trouble(scene, random, random.pick(['worker', 'producer']), 'slow', async ({ proxy }) => {
        proxy!.delay(random.between(20, 200));
        proxy!.slice(random.chance(0.2));
        await sleep(random.between(500, 2_000));
        proxy!.delay(0);
        proxy!.slice(false);
      }),
  },
  outage: {
    what: 'nobody reaches Redis for longer than a lease',
    share: 0.5,
    topologies: proxied,
    everybody: true,
    strike: async (scene, random) => {
      for (const { proxy } of scene.actors) proxy?.refuse(true);
      await sleep(scene.leaseMs + random.between(300, 1_000));
      for (const { proxy } of scene.actors) proxy?.refuse(false);
    },
  },
  failover: {
    what: 'kill -9 of a master; a replica takes over',
    share: 1,
    topologies: ['sentinel', 'cluster'],
    everybody: true,
    strike: (scene) => scene.stage.failOver(),
  },
  reshard: {
    what: 'a slot moves to another master under load',
    share: 2,
    topologies: ['cluster'],
    everybody: true,
    strike: (scene, random) => scene.stage.reshard(random),
  },
} satisfies Record<string, QueueFault>;

export type FaultName = keyof typeof faults;
export const faultNames = Object.keys(faults) as FaultName[];

function choose(scene: Scene, random: Random, role: Role): Actor | undefined {
  const free = scene.actors.filter(
    (actor) => actor.role === role && !actor.troubled && actor.pid !== undefined,
  );
  return free.length > 0 ? random.pick(free) : undefined;
}

function signalOne(scene: Scene, random: Random, role: Role, signal: NodeJS.Signals): void {
  choose(scene, random, role)?.signal(signal);
}

async function trouble(
  scene: Scene,
  random: Random,
  role: Role,
  name: string,
  act: (actor: Actor) => Promise<void>,
): Promise<void> {
  const actor = choose(scene, random, role);
  if (!actor) return;
  const pid = actor.pid!;
  const from = Date.now();
  actor.troubled = true;
  await act(actor);
  actor.troubled = false;
  scene.faults.write({ f: 'fault', name, from, to: Date.now(), pid });
}

async function loseReplies(scene: Scene, random: Random): Promise<void> {
  const { role, shas } = random.pick(scene.losing);
  const when = (request: Buffer) => shas.some((sha) => request.includes(sha));
  await trouble(scene, random, role, 'lose', async ({ proxy }) => {
    for (let left = random.between(1, 8); left > 0; left--) {
      await Promise.race([proxy!.loseReplies({ when }), sleep(trapMs)]);
    }
  });
}
