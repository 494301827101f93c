// Conducts a run: sets the stage, lets producers, workers, a foreign producer and an operator play, breaks things by plan, mends
// everything, waits until the books are quiet, ends all processes, copies the books and has them checked.
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { scripts } from '@sluice/queue/testing';
import { Armory } from './armory.js';
import { copyBooks } from './books.js';
import { Actor } from './cast.js';
import { check } from './checker.js';
import type { Verdict } from './checker.js';
import { Journal, JournalReader, files } from './evidence.js';
import type { FaultLine, LedgerLine, ProducerLine } from './evidence.js';
import type { Role } from './failPoints.js';
import { faultNames, faults, usualPace } from './faults.js';
import type { FaultName, Scene } from './faults.js';
import { drain, encore } from './finale.js';
import { Observer } from './observer.js';
import type { Part } from './part.js';
import { Random } from '@sluice/testbed/random';
import { guards, takeOut } from './sabotage.js';
import type { Guard, GuardName } from './sabotage.js';
import { openStage } from './stage.js';
import type { Stage, Topology } from './stage.js';
import { planStrikes, strikeAll } from './strikes.js';
import type { Struck } from './strikes.js';
import { tour } from './tour.js';
import type { Kind } from './work.js';

const queue = 'chaos';
const leaseMs = 2_000;
const openingMs = 30_000;
const openingLines = 50;
/** Half-made chains are completed after ten seconds; after that nothing should take long. */
const drainMs = 60_000;
/** A guard that is missing leaves jobs behind for ever: no need to wait for them. */
const sabotagedDrainMs = 4_000;
const lookEveryMs = 100;
const maxEvents = 1_000_000;
const swiftKinds: Kind[] = ['quick', 'hopeless'];
const gentleKinds: Kind[] = ['quick', 'failing', 'dying', 'snoozing', 'slow'];

export interface RunOptions {
  seed: string;
  seconds: number;
  topology: Topology;
  /** Empty for all that the topology allows; `point` arms the fail points. */
  only: (FaultName | 'point')[];
  /** Instead of faults by plan: every fail point once. Ends when all have been met, after `seconds` at the latest. */
  tour?: boolean;
  /** Plain jobs that take no time, in bursts, for workers with many slots: bales and sheaves all the way. */
  swift?: boolean;
  sabotage?: GuardName | undefined;
  /** The trouble of a sabotage with the guard in its place: there must be nothing to object. */
  control?: boolean;
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
  const putBack = options.sabotage && !options.control ? takeOut(options.sabotage) : undefined;
  try {
    return await play(options);
  } finally {
    putBack?.();
  }
}

async function play(options: RunOptions): Promise<RunReport> {
  const { say = () => {}, seconds, topology, sabotage } = options;
  const guard: Guard | undefined = sabotage && guards[sabotage];
  const random = new Random(options.seed);
  const folder = evidenceFolder(options);
  mkdirSync(folder, { recursive: true });
  const log = new Journal<FaultLine>(join(folder, files.faults));
  const mode = modeOf(options);
  const armory = new Armory({
    seed: random.fork('points'),
    folder,
    leaseMs,
    sabotage: options.control ? undefined : sabotage,
    mode,
    lengthMs: seconds * 1_000,
  });
  say(`opening a ${topology} Redis; evidence in ${folder}`);
  const stage = await openStage(topology, queue);
  const observer = new Observer(stage, queue, leaseMs, folder);
  const actors = await castActors(stage, options, guard, folder, log, armory);
  const violations: string[] = [];
  const untilQuiet = async () => {
    const left = await drain(
      stage,
      queue,
      observer,
      actors,
      guard && !options.control ? sabotagedDrainMs : drainMs,
    );
    if (left) violations.push(`the queue did not drain: ${left}`);
  };
  let struck: Struck<FaultName> = { counts: new Map(), misses: [] };
  try {
    observer.start();
    if (guard?.events) {
      const [server] = await stage.masters();
      await server!.command('HSET', `sluice:{${queue}:0}:cfg`, 'events', maxEvents);
    }
    for (const actor of actors) actor.start();
    const thawing = armory.thaw(actors);
    await untilWorking(folder);
    say('work is being done; the faults begin');
    const endMs = Date.now() + seconds * 1_000;
    const scene: Scene = { stage, actors, leaseMs, losing: losingOf(guard), faults: log, say };
    if (options.tour) {
      const pushed = new Journal<ProducerLine>(join(folder, files.producer('tour')));
      const isWorking = ({ role, name, pid }: Actor) =>
        role === 'worker'
          ? observer.present.some((session) => session.pid === pid && session.usedAt !== null)
          : existsSync(join(folder, files.producer(`${name}-${pid}`)));
      const unmet = await tour(scene, armory, queue, pushed, isWorking, endMs);
      if (unmet.length > 0) violations.push(`the tour did not meet ${unmet.join(', ')}`);
      armory.endAt(0);
    } else {
      armory.endAt(endMs);
      const names = guard?.faults ?? faultsOf(options);
      const pace = guard?.pausesMs ? { ...usualPace, pausesMs: guard.pausesMs } : usualPace;
      const plan = planStrikes(faults, random.fork('strikes'), seconds * 1_000, names, pace);
      struck = await strikeAll(faults, scene, plan);
      await sleep(Math.max(0, endMs - Date.now()));
    }
    await thawing;
    say('the faults end; producers stop, and the queue drains');
    for (const { proxy } of actors) proxy?.heal();
    const ofRoles = (...roles: Role[]) => actors.filter(({ role }) => roles.includes(role));
    violations.push(...(await endAll(ofRoles('producer', 'foreign', 'operator'))));
    for (const operator of ofRoles('operator')) {
      if (!(await operator.playLast({ closing: true }))) violations.push('the operator could not tidy up');
    }
    await untilQuiet();
    if (!guard) {
      say('the encore: one worker is killed while all is well');
      violations.push(...(await encore(stage, queue, actors, folder, log)));
      await untilQuiet();
    }
    violations.push(...(await endAll(ofRoles('worker'))));
    await observer.stop();
    await copyBooks(await stage.masters(), folder);
  } finally {
    await Promise.all(actors.map((actor) => actor.end()));
    await stage.stop();
    log.close();
  }
  const verdict = check(folder, { queue, leaseMs });
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
function evidenceFolder({ seed, topology, sabotage, control, tour: touring }: RunOptions): string {
  const root = fileURLToPath(new URL('../../../.sluice/chaos/', import.meta.url));
  const name = [
    topology,
    touring && 'tour',
    sabotage && `${control ? 'with' : 'without'}-${sabotage}`,
    `seed-${seed}`,
    process.pid,
    Date.now(),
  ];
  return join(root, name.filter(Boolean).join('-'));
}

function faultsOf({ topology, only }: RunOptions): FaultName[] {
  const possible = faultNames.filter((name) => (faults[name].topologies as Topology[]).includes(topology));
  return only.length > 0 ? possible.filter((name) => only.includes(name)) : possible;
}

function losingOf(guard: Guard | undefined): Scene['losing'] {
  const sha = (name: keyof typeof scripts) => scripts[name].sha;
  const byRole: Record<'worker' | 'producer' | 'operator', (keyof typeof scripts)[]> = {
    worker: [
      'claim',
      'take',
      'settle',
      'retry',
      'rescue',
      'open',
      'addEach',
      'unblock',
      'tick',
      'renew',
      'close',
    ],
    producer: ['add', 'addEach', 'chainKeep', 'chainDrop', 'depend'],
    operator: ['cancel', 'replay', 'rule', 'schedule'],
  };
  return (['worker', 'producer', 'operator'] as const).flatMap((role) => {
    const names = byRole[role].filter((name) => !guard || guard.losing.includes(name));
    return names.length > 0 ? [{ role, shas: names.map(sha) }] : [];
  });
}

async function castActors(
  stage: Stage,
  { seed, tour: touring, swift = false }: RunOptions,
  guard: Guard | undefined,
  folder: string,
  log: Journal<FaultLine>,
  armory: Armory,
): Promise<Actor[]> {
  const cast: [Role, number][] = [
    ['worker', guard?.workers ?? 3],
    ['producer', 2],
    ['foreign', guard ? 0 : 1],
    ['operator', guard ? 0 : 1],
  ];
  const actors: Actor[] = [];
  for (const [role, count] of cast) {
    for (let i = 1; i <= count; i++) {
      const proxy = await stage.openProxy();
      const part: Part = {
        name: `${role}-${i}`,
        folder,
        seed,
        redis: proxy?.url ?? stage.url,
        queue,
        partitions: stage.partitions,
        leaseMs,
        concurrency: guard?.concurrency ?? (swift ? 64 : 8),
        // On a tour, points kill processes; jobs that do so too would only take time.
        mix: {
          kinds: guard?.kinds ?? (swift ? swiftKinds : touring ? gentleKinds : []),
          plain: guard?.plain ?? swift,
          swift,
          leaseMs,
        },
        burstShare: swift ? 0.2 : 0.003,
        perSecond: guard?.perSecond ?? 100,
        closing: false,
        replicas: stage.replicas,
      };
      actors.push(new Actor(role, part, proxy, log, (who) => armory.arm(who)));
    }
  }
  return actors;
}

/** Faults before producers and workers are up would hit nobody. */
async function untilWorking(folder: string): Promise<void> {
  const ledger = new JournalReader<LedgerLine>(join(folder, files.ledger));
  const deadline = Date.now() + openingMs;
  for (let lines = 0; lines < openingLines; lines += ledger.read().length) {
    if (Date.now() > deadline)
      throw new Error(`no work was done within ${openingMs} ms; see the logs in ${folder}`);
    await sleep(lookEveryMs);
  }
}

async function endAll(actors: readonly Actor[]): Promise<string[]> {
  const ended = await Promise.all(actors.map((actor) => actor.end()));
  return actors.flatMap(({ name }, i) => (ended[i] ? [] : [`${name} did not end when it was asked to`]));
}
