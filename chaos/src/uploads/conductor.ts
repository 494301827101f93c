// Conducts a run of uploads: sets the stage, lets servers and clients play, breaks things by plan or kills a server at every fail
// point, mends everything, waits until the service has put itself in order, copies the books and has them checked.
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Journal } from '../evidence.js';
import type { FaultLine } from '../evidence.js';
import { Random } from '@sluice/testbed/random';
import { planStrikes, strikeAll } from '../strikes.js';
import type { Struck } from '../strikes.js';
import { Armory } from './armory.js';
import { copyBooks } from './books.js';
import { check, readEvidence } from './checker.js';
import type { Verdict } from './checker.js';
import { files, readClients } from './evidence.js';
import { faults as allFaults, faultsOf, mend, usualPace } from './faults.js';
import type { FaultName, Scene } from './faults.js';
import { untilQuiet } from './finale.js';
import type { Part } from './part.js';
import { Player } from './player.js';
import { guards, takeOut } from './sabotage.js';
import type { Guard, GuardName } from './sabotage.js';
import { leaseMs, openStage } from './stage.js';
import type { Stage, StoreKind } from './stage.js';

const openingMs = 90_000;
const openingFiles = 3;
const quietMs = 90_000;
/** A guard that is missing leaves things behind for ever: no need to wait for them. */
const sabotagedQuietMs = 14_000;
/** What clients have to finish what they have begun; on a busy machine that takes long. */
const finishMs = 100_000;
const sabotagedFinishMs = 15_000;
const lookEveryMs = 100;
const serverEndsWithinMs = 20_000;
const clientEndsWithinMs = 110_000;
const serverRoles = ['api,uploads,relay', 'api,uploads'];
const clients = 2;

export interface RunOptions {
  seed: string;
  seconds: number;
  store: StoreKind;
  /** Empty for all that the store allows; `point` arms the fail points. */
  only: (FaultName | 'point')[];
  /** Instead of faults by plan: every fail point once. Ends when all have been met, after `seconds` at the latest. */
  tour?: boolean;
  sabotage?: GuardName | undefined;
  /** Keeps the evidence also when nothing was wrong. */
  keep?: boolean;
  say?: (line: string) => void;
}

export interface RunReport extends Verdict {
  /** Where the evidence is; removed when there was no violation. */
  folder: string;
  strikes: Map<FaultName, number>;
  /** Strikes that did not do what they should. */
  misses: string[];
}

export async function conduct(options: RunOptions): Promise<RunReport> {
  // The conductor runs no script, but must know the hashes of those that are run.
  const putBack = options.sabotage ? takeOut(options.sabotage) : undefined;
  try {
    return await play(options);
  } finally {
    putBack?.();
  }
}

async function play(options: RunOptions): Promise<RunReport> {
  const { say = () => {}, seconds, sabotage, seed } = options;
  const guard: Guard | undefined = sabotage && guards[sabotage];
  const random = new Random(seed);
  const folder = evidenceFolder(options);
  mkdirSync(folder, { recursive: true });
  const faults = new Journal<FaultLine>(join(folder, files.faults));
  const armory = new Armory({
    random: random.fork('points'),
    folder,
    leaseMs,
    sabotage,
    mode: modeOf(options),
  });
  say(`opening Redis, PostgreSQL and a store (${options.store}); evidence in ${folder}`);
  const stage = await openStage(options.store);
  const players = await cast(stage, options, folder, faults, armory);
  const scene: Scene = { stage, players, leaseMs, faults, say, notesAll: true };
  const violations: string[] = [];
  let struck: Struck<FaultName> = { counts: new Map(), misses: [] };
  try {
    for (const player of players) player.start();
    const thawing = armory.thaw(players);
    await untilWorking(folder, options.tour === true);
    armory.open();
    say('files are being uploaded; the faults begin');
    const endMs = Date.now() + seconds * 1_000;
    if (options.tour) {
      const unmet = await tour(armory, endMs);
      if (unmet.length > 0) violations.push(`the tour did not meet ${unmet.join(', ')}`);
    } else {
      const names = guard ? guard.faults : faultsOf(options.store === 's3', options.only);
      armory.endAt(endMs);
      const plan = planStrikes(allFaults, random.fork('strikes'), seconds * 1_000, names, usualPace);
      struck = await strikeAll(allFaults, scene, plan);
      await sleep(Math.max(0, endMs - Date.now()));
    }
    armory.endAt(0);
    await thawing;
    mend(scene);
    say('the faults end; clients finish what they have begun');
    if (options.tour) await disarm(players);
    const ofRole = (role: Player['role']) => players.filter((player) => player.role === role);
    violations.push(...(await endAll(ofRole('client'))));
    say('clients are done; the service puts itself in order');
    const left = await untilQuiet(stage, guard ? sabotagedQuietMs : quietMs);
    if (left.length > 0) violations.push(`the service did not come to rest: ${left.join(', ')}`);
    violations.push(...(await endAll(ofRole('server'))));
    await copyBooks(stage, folder);
  } finally {
    await Promise.all(players.map((player) => player.kill()));
    await stage.stop();
    faults.close();
  }
  const verdict = check(readEvidence(folder));
  violations.push(...verdict.violations);
  if (violations.length === 0 && !options.keep) rmSync(folder, { recursive: true, force: true });
  const { counts: strikes, misses } = struck;
  const figures = { ...verdict.figures, ofPoints: armory.points.length };
  return { violations, figures, folder, strikes, misses };
}

function modeOf({ tour: touring, sabotage, only }: RunOptions): 'none' | 'chance' | 'tour' {
  if (touring) return 'tour';
  return sabotage || (only.length > 0 && !only.includes('point')) ? 'none' : 'chance';
}

/** Beside the repository's other state; named for what ran. */
function evidenceFolder({ seed, store, sabotage, tour: touring }: RunOptions): string {
  const root = fileURLToPath(new URL('../../../../.sluice/chaos/', import.meta.url));
  const name = ['uploads', store, touring && 'tour', sabotage && `without-${sabotage}`, `seed-${seed}`];
  return join(root, [...name, process.pid, Date.now()].filter(Boolean).join('-'));
}

async function cast(
  stage: Stage,
  { seed, sabotage }: RunOptions,
  folder: string,
  faults: Journal<FaultLine>,
  armory: Armory,
): Promise<Player[]> {
  const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
  const servers: Player[] = [];
  for (const [i, roles] of serverRoles.entries()) {
    const place = await stage.openPlace(roles);
    const command = () => ({
      args: ['--import', here('arm.js'), here('../../../../apps/server/dist/src/main.js')],
      env: { ...place.env, CHAOS_ARMS: JSON.stringify(armory.arm(i)) },
    });
    const name = `server-${i + 1}`;
    servers.push(
      new Player({ role: 'server', name, folder, faults, place, command, endsWithinMs: serverEndsWithinMs }),
    );
  }
  const urls = servers.map(({ place }) => place!.url);
  const others = Array.from({ length: clients }, (_, i): Player => {
    const name = `client-${i + 1}`;
    const part: Part = {
      name,
      folder,
      seed,
      servers: urls,
      concurrency: 5,
      bytesUnderWay: 20 * 1_048_576,
      repeatShare: sabotage ? 0.9 : 0.3,
      finishWithinMs: sabotage ? sabotagedFinishMs : finishMs,
    };
    const command = () => ({ args: [here('clientProcess.js'), JSON.stringify(part)], env: {} });
    return new Player({ role: 'client', name, folder, faults, command, endsWithinMs: clientEndsWithinMs });
  });
  return [...servers, ...others];
}

/** Faults before anybody works would hit nobody. On a tour servers are killed from the start. */
async function untilWorking(folder: string, touring: boolean): Promise<void> {
  const deadline = Date.now() + openingMs;
  while (!touring && readClients(folder).filter(({ e }) => e === 'completed').length < openingFiles) {
    if (Date.now() > deadline)
      throw new Error(`no file was uploaded within ${openingMs} ms; see the logs in ${folder}`);
    await sleep(lookEveryMs);
  }
}

/** Every fail point is met once, with a kill -9. Resolves with those that were not. */
async function tour(armory: Armory, deadlineMs: number): Promise<string[]> {
  while (armory.unmet().length > 0 && Date.now() < deadlineMs) await sleep(lookEveryMs);
  return armory.unmet();
}

/** A server may still be armed with a point that another has met meanwhile: it is replaced by one that is not. */
async function disarm(players: readonly Player[]): Promise<void> {
  for (const player of players) if (player.role === 'server') player.signal('SIGTERM');
  await sleep(lookEveryMs);
}

async function endAll(players: readonly Player[]): Promise<string[]> {
  const ended = await Promise.all(players.map((player) => player.end()));
  return players.flatMap(({ name }, i) => (ended[i] ? [] : [`${name} did not end when it was asked to`]));
}
