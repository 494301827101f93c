// What goes wrong while files are uploaded; when, is drawn in `../strikes.ts`.
import { setTimeout as sleep } from 'node:timers/promises';
import type { S3Fault, S3Operation } from '@sluice/testbed';
import { scripts } from '@sluice/upload/testing';
import type { Random } from '@sluice/testbed/random';
import type { Fault, Pace, StruckScene } from '../strikes.js';
import type { Player } from './player.js';
import type { Stage } from './stage.js';

export const usualPace: Pace = { firstStrikeMs: 500, pausesMs: [250, 900] };
/** How often a server is hit while another one is not well. Mostly one is left, or nothing would be uploaded at all. */
const allAtOnceShare = 0.1;
const wellWithinMs = 5_000;
const lookEveryMs = 50;
/** A trap that nothing springs is given up. */
const trapMs = 800;

export interface Scene extends StruckScene {
  stage: Stage;
  players: Player[];
  leaseMs: number;
}

interface UploadFault extends Fault<Scene> {
  /** Needs an S3 server. */
  s3?: true;
}

const writes: S3Operation[] = ['PutObject', 'UploadPart', 'CreateMultipartUpload', 'CompleteMultipartUpload'];
const reads: S3Operation[] = [
  'GetObject',
  'HeadObject',
  'ListObjects',
  'ListMultipartUploads',
  'DeleteObject',
];

export const faults = {
  kill: {
    what: 'kill -9 of a server',
    share: 3,
    strike: async (scene, random) => (await choose(scene, random, 'server'))?.signal('SIGKILL'),
  },
  'kill-client': {
    what: 'kill -9 of a client',
    share: 0.5,
    strike: async (scene, random) => (await choose(scene, random, 'client'))?.signal('SIGKILL'),
  },
  replace: {
    what: 'SIGTERM of a server, as in a deployment',
    share: 1,
    strike: async (scene, random) => (await choose(scene, random, 'server'))?.signal('SIGTERM'),
  },
  stop: {
    what: 'SIGSTOP of a server beyond its leases, then SIGCONT',
    share: 2,
    strike: (scene, random) =>
      trouble(scene, random, 'server', 'stop', async (player) => {
        const { pid } = player;
        player.signal('SIGSTOP');
        await sleep(scene.leaseMs + random.between(300, 2_000));
        if (player.pid === pid) player.signal('SIGCONT');
      }),
  },
  'kill-redis': {
    what: 'kill -9 of Redis, and its restart',
    share: 1,
    everybody: true,
    strike: async ({ stage }, random) => {
      await stage.redis.kill9();
      await sleep(random.between(50, 600));
      await stage.redis.restart();
    },
  },
  'stop-redis': {
    what: 'SIGSTOP of Redis for longer than a lease',
    share: 0.5,
    everybody: true,
    strike: async ({ stage, leaseMs }, random) => {
      stage.redis.pause();
      await sleep(leaseMs + random.between(100, 800));
      stage.redis.resume();
    },
  },
  flush: {
    what: 'SCRIPT FLUSH',
    share: 1,
    strike: async ({ stage }) => void (await stage.redis.command('SCRIPT', 'FLUSH')),
  },
  'lose-chunks': {
    what: 'all buffered bytes are lost: FLUSHALL, or kill -9, of the Redis that has them',
    share: 1,
    strike: async ({ stage }, random) => {
      if (random.chance(0.5)) return void (await stage.chunks.command('FLUSHALL'));
      if (!stage.chunks.running) return;
      await stage.chunks.kill9();
      await sleep(random.between(50, 800));
      await stage.chunks.restart();
    },
  },
  'lose-replies': {
    what: 'replies of Redis lost: carried out, never answered',
    share: 3,
    strike: loseReplies,
  },
  'cut-redis': {
    what: 'connections between a server and Redis dropped',
    share: 1,
    strike: async (scene, random) => (await choose(scene, random, 'server'))?.place!.back.cut(),
  },
  'kill-postgres': {
    what: 'kill -9 of PostgreSQL, and its restart',
    share: 1,
    everybody: true,
    strike: async ({ stage }, random) => {
      await stage.postgres.kill9();
      await sleep(random.between(50, 600));
      await stage.postgres.restart();
    },
  },
  'stop-postgres': {
    what: 'SIGSTOP of PostgreSQL',
    share: 0.5,
    everybody: true,
    strike: async ({ stage }, random) => {
      stage.postgres.pause();
      await sleep(random.between(500, 3_000));
      stage.postgres.resume();
    },
  },
  'cut-clients': {
    what: 'connections between clients and a server dropped, sometimes for a while',
    share: 3,
    strike: async (scene, random) => {
      const front = (await choose(scene, random, 'server'))?.place!.front;
      if (!front || random.chance(0.7)) return front?.cut();
      front.refuse(true);
      await sleep(random.between(200, 1_500));
      front.refuse(false);
    },
  },
  'slow-clients': {
    what: 'a slow link between clients and a server',
    share: 1,
    strike: (scene, random) =>
      trouble(scene, random, 'server', 'slow-clients', async ({ place }) => {
        place!.front.delay(random.between(20, 200));
        await sleep(random.between(500, 1_500));
        place!.front.delay(0);
      }),
  },
  's3-errors': {
    what: 'the store answers 500 or 503',
    share: 2,
    s3: true,
    strike: async (scene, random) => {
      const fault: S3Fault = random.chance(0.5)
        ? { do: 'answer', status: 500, code: 'InternalError' }
        : { do: 'answer', status: 503, code: 'SlowDown' };
      inject(scene, random, random.pick([...writes, ...reads]), fault, random.between(1, 8));
    },
  },
  's3-cut': {
    what: 'the store carries a request out, or does not, and the connection is cut',
    share: 3,
    s3: true,
    strike: async (scene, random) => {
      const fault: S3Fault = { do: 'cut', when: random.chance(0.7) ? 'after' : 'before' };
      inject(scene, random, random.pick([...writes, ...writes, ...reads]), fault, random.between(1, 3));
    },
  },
  's3-slow': {
    what: 'the store answers late',
    share: 1,
    s3: true,
    strike: async (scene, random) =>
      inject(scene, random, random.pick(writes), { do: 'delay', ms: random.between(200, 3_000) }, 4),
  },
  's3-hang': {
    what: 'the store swallows a request and never answers',
    share: 1,
    s3: true,
    strike: async (scene, random) =>
      inject(scene, random, random.pick([...writes, ...reads]), { do: 'hang' }, random.between(1, 2)),
  },
  's3-stop': {
    what: 'SIGSTOP of the store',
    share: 0.5,
    s3: true,
    everybody: true,
    strike: async ({ stage }, random) => {
      stage.gateway!.pause();
      await sleep(random.between(500, 3_000));
      stage.gateway!.resume();
    },
  },
  's3-kill': {
    what: 'kill -9 of the store, and its restart',
    share: 0.5,
    s3: true,
    everybody: true,
    strike: async ({ stage }, random) => {
      await stage.gateway!.kill9();
      await sleep(random.between(50, 600));
      await stage.gateway!.restart();
    },
  },
  's3-truncate': {
    what: 'the store’s answers end early',
    share: 1,
    s3: true,
    strike: async (scene, random) =>
      inject(scene, random, 'GetObject', { do: 'truncate', afterBytes: random.between(0, 200_000) }, 3),
  },
  's3-false-success': {
    what: 'the store says 200 and an error',
    share: 1,
    s3: true,
    strike: async (scene, random) => {
      const fault: S3Fault = { do: 'error in 200', code: 'InternalError', carriedOut: random.chance(0.5) };
      inject(scene, random, 'CompleteMultipartUpload', fault, 1);
    },
  },
} satisfies Record<string, UploadFault>;

export type FaultName = keyof typeof faults;
export const faultNames = Object.keys(faults) as FaultName[];

export function faultsOf(hasS3: boolean, only: readonly string[]): FaultName[] {
  const possible = faultNames.filter((name) => hasS3 || !(faults[name] as UploadFault).s3);
  return only.length > 0 ? possible.filter((name) => only.includes(name)) : possible;
}

/** Everything as it should be; what was frozen goes on. */
export function mend({ stage, players }: Scene): void {
  stage.s3Faults?.heal();
  for (const { place } of players) {
    place?.front.heal();
    place?.back.heal();
  }
}

/** Mostly waits until all servers are well, so that one is left and something is uploaded; undefined when that takes too long. */
async function choose({ players }: Scene, random: Random, role: Player['role']): Promise<Player | undefined> {
  const peers = players.filter((player) => player.role === role);
  const isFree = (player: Player) => !player.troubled && player.pid !== undefined;
  const isWell = (player: Player) => isFree(player) && player.isUp;
  const waits = role === 'server' && !random.chance(allAtOnceShare);
  const deadline = Date.now() + wellWithinMs;
  while (waits && !peers.every(isWell)) {
    if (Date.now() > deadline) return undefined;
    await sleep(lookEveryMs);
  }
  const free = peers.filter(isFree);
  return free.length > 0 ? random.pick(free) : undefined;
}

async function trouble(
  scene: Scene,
  random: Random,
  role: Player['role'],
  name: string,
  act: (player: Player) => Promise<void>,
): Promise<void> {
  const player = await choose(scene, random, role);
  if (!player) return;
  const pid = player.pid!;
  const from = Date.now();
  player.troubled = true;
  await act(player);
  player.troubled = false;
  scene.faults.write({ f: 'fault', name, from, to: Date.now(), pid });
}

function inject(
  { stage }: Scene,
  random: Random,
  operation: S3Operation,
  fault: S3Fault,
  times: number,
): void {
  // Rules that nothing meets would pile up.
  if (random.chance(0.2)) stage.s3Faults!.heal();
  stage.s3Faults!.inject({ operation, fault, times });
}

async function loseReplies(scene: Scene, random: Random): Promise<void> {
  const names = random.shuffled(Object.keys(scripts) as (keyof typeof scripts)[]).slice(0, 6);
  const shas = names.map((name) => scripts[name].sha);
  const when = (request: Buffer) => shas.some((sha) => request.includes(sha));
  await trouble(scene, random, 'server', 'lose-replies', async ({ place }) => {
    for (let left = random.between(1, 4); left > 0; left--)
      await Promise.race([place!.back.loseReplies({ when }), sleep(trapMs)]);
  });
}
