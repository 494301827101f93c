// Conducts a run: sets the stage, lets producers, workers, a foreign producer and an operator play, breaks things by plan, mends
// everything, waits until the books are quiet, ends all processes, copies the books and has them checked.
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Redis } from 'ioredis';
import { scripts } from '@sluice/queue/testing';
import type { FailAction } from '@sluice/queue/testing';
import type { Arms } from './arm.js';
import { copyBooks } from './books.js';
import { Actor } from './cast.js';
import { check } from './checker.js';
import type { Verdict } from './checker.js';
import { Journal, JournalReader, files } from './evidence.js';
import type { FaultLine, LedgerLine, ProducerLine } from './evidence.js';
import { findFailPoints } from './failPoints.js';
import type { Role } from './failPoints.js';
import { faultNames, faults, planStrikes, strikeAll } from './faults.js';
import type { FaultName, Scene } from './faults.js';
import { Observer } from './observer.js';
import type { Part } from './part.js';
import { Random } from './random.js';
import { guards, takeOut } from './sabotage.js';
import type { Guard, GuardName } from './sabotage.js';
import { openStage } from './stage.js';
import type { Stage, Topology } from './stage.js';
import type { Work } from './work.js';

const queue = 'chaos';
const leaseMs = 2_000;
const openingMs = 10_000;
/** Half-made chains are completed after ten seconds; after that nothing should take long. */
const drainMs = 40_000;
/** A guard that is missing leaves jobs behind for ever: no need to wait for them. */
const sabotagedDrainMs = 6_000;
const quietLooks = 3;
const encoreJobs = 6;
const encoreMs = 1_500;
const lookEveryMs = 100;

export interface RunOptions {
  seed: string;
  seconds: number;
  topology: Topology;
  /** Empty for all that the topology allows; `point` arms the fail points. */
  only: (FaultName | 'point')[];
  sabotage?: GuardName | undefined;
  /** Keeps the evidence also when nothing was wrong. */
  keep?: boolean;
  say?: (line: string) => void;
}

export interface RunReport extends Verdict {
  /** Where the evidence is; removed when there was no violation. */
  folder: string;
  strikes: Map<FaultName, number>;
}

export async function conduct(options: RunOptions): Promise<RunReport> {
  // The conductor runs no script, but must know the hashes of those that are run.
  const putBack = options.sabotage && takeOut(options.sabotage);
  try {
    return await play(options);
  } finally {
    putBack?.();
  }
}

async function play(options: RunOptions): Promise<RunReport> {
  const say = options.say ?? (() => {});
  const folder = evidenceFolder(options);
  mkdirSync(folder, { recursive: true });
  const guard: Guard | undefined = options.sabotage && guards[options.sabotage];
  say(`opening a ${options.topology} Redis; evidence in ${folder}`);
  const stage = await openStage(options.topology, queue);
  const log = new Journal<FaultLine>(join(folder, files.faults));
  const observer = new Observer(stage, queue, leaseMs, folder);
  const random = new Random(options.seed);
  const until = { faultsMs: Infinity };
  const armory = new Armory(options, folder, random.fork('points'), until);
  const actors = await castActors(stage, options, guard, folder, log, armory);
  const violations: string[] = [];
  let strikes = new Map<FaultName, number>();
  try {
    observer.start();
    for (const actor of actors) actor.start();
    await untilOpen(stage, observer, actors);
    say('all workers are up; the faults begin');
    until.faultsMs = Date.now() + options.seconds * 1_000;
    const scene: Scene = { stage, actors, leaseMs, losing: losingOf(guard), faults: log, say };
    const names = (guard?.faults ?? faultsOf(options)) as FaultName[];
    const thawing = armory.thaw(actors);
    strikes = await strikeAll(scene, planStrikes(random.fork('strikes'), options.seconds * 1_000, names));
    await sleep(Math.max(0, until.faultsMs - Date.now()));
    until.faultsMs = 0;
    await thawing;
    say('the faults end; producers stop, and the queue drains');
    for (const { proxy } of actors) proxy?.heal();
    const ofRoles = (...roles: Role[]) => actors.filter(({ role }) => roles.includes(role));
    violations.push(...(await endAll(ofRoles('producer', 'foreign', 'operator'))));
    const untilQuiet = async () => {
      const left = await drain(stage, observer, actors, guard ? sabotagedDrainMs : drainMs);
      if (left) violations.push(`the queue did not drain: ${left}`);
    };
    await untilQuiet();
    if (!guard) {
      say('an encore: one worker is killed while all is well');
      violations.push(...(await encore(stage, actors, folder, log)));
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
  const points = armory.all.length;
  if (violations.length === 0 && !options.keep) rmSync(folder, { recursive: true, force: true });
  return { violations, figures: { ...verdict.figures, ofPoints: points }, folder, strikes };
}

/** Beside the repository's other state; named for what ran. */
function evidenceFolder({ seed, topology, sabotage }: RunOptions): string {
  const root = fileURLToPath(new URL('../../../.sluice/chaos/', import.meta.url));
  const name = [topology, sabotage && `without-${sabotage}`, `seed-${seed}`, process.pid, Date.now()];
  return join(root, name.filter(Boolean).join('-'));
}

function faultsOf({ topology, only }: RunOptions): FaultName[] {
  const possible = faultNames.filter((name) => (faults[name].topologies as Topology[]).includes(topology));
  return only.length > 0 ? possible.filter((name) => only.includes(name)) : possible;
}

function losingOf(guard: Guard | undefined): Scene['losing'] {
  const sha = (name: keyof typeof scripts) => scripts[name].sha;
  const byRole: Record<'worker' | 'producer' | 'operator', (keyof typeof scripts)[]> = {
    worker: ['claim', 'take', 'settle', 'retry', 'rescue', 'open', 'addEach', 'unblock', 'tick', 'renew', 'close'],
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
  { seed }: RunOptions,
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
        concurrency: guard?.concurrency ?? 8,
        mix: { kinds: guard?.kinds ?? [], plain: guard?.plain ?? false, leaseMs },
        perSecond: 150,
        replicas: stage.replicas,
      };
      actors.push(new Actor(role, part, proxy, log, (who) => armory.arm(who)));
    }
  }
  return actors;
}

/** Which fail points are armed. Points that have not fired yet come first: that way a run meets as many as it can. */
class Armory {
  readonly all = findFailPoints();
  readonly #options: RunOptions;
  readonly #file: string;
  readonly #random: Random;
  readonly #until: { faultsMs: number };
  readonly #reader: JournalReader<FaultLine>;
  readonly #fired = new Set<string>();
  readonly #frozen = new Map<number, number>();

  constructor(options: RunOptions, folder: string, random: Random, until: { faultsMs: number }) {
    this.#options = options;
    this.#file = join(folder, files.faults);
    this.#random = random;
    this.#until = until;
    this.#reader = new JournalReader(this.#file);
  }

  arm(role: Role): Arms {
    const { only, sabotage } = this.#options;
    const now = Date.now();
    const arms: Arms = { sabotage, fromMs: 0, untilMs: 0, points: {}, faults: this.#file };
    const ended = now > this.#until.faultsMs || this.#until.faultsMs === Infinity;
    if (sabotage || ended || (only.length > 0 && !only.includes('point'))) return arms;
    this.#readFired();
    const mine = this.all.filter(({ roles }) => roles.includes(role)).map(({ name }) => name);
    const unmet = mine.filter((name) => !this.#fired.has(name));
    const chosen = unmet.length > 0 ? unmet : this.#random.shuffled(mine).slice(0, 3);
    for (const name of chosen) arms.points[name] = this.#action(role);
    arms.fromMs = now + this.#random.between(300, 1_200);
    arms.untilMs = this.#until.faultsMs;
    return arms;
  }

  /** Wakes processes that a fail point froze, well after their leases, until the faults end. */
  async thaw(actors: readonly Actor[]): Promise<void> {
    const pauseMs = leaseMs + 800;
    const wake = (pid: number) => actors.find((actor) => actor.pid === pid)?.signal('SIGCONT');
    while (Date.now() < this.#until.faultsMs || this.#frozen.size > 0) {
      await sleep(lookEveryMs);
      this.#readFired();
      for (const [pid, at] of this.#frozen) {
        if (Date.now() < at + pauseMs) continue;
        this.#frozen.delete(pid);
        wake(pid);
      }
    }
  }

  #action(role: Role): FailAction {
    if (role !== 'worker' || this.#random.chance(0.7)) return 'kill';
    return this.#random.pick<FailAction>(['freeze', 'throw', { blockMs: leaseMs * 1.3 }]);
  }

  #readFired(): void {
    for (const line of this.#reader.read()) {
      if (line.f !== 'point') continue;
      this.#fired.add(line.point);
      if (line.action === 'freeze') this.#frozen.set(line.pid, line.at);
    }
  }
}

async function untilOpen(stage: Stage, observer: Observer, actors: readonly Actor[]): Promise<void> {
  const workers = actors.filter(({ role }) => role === 'worker');
  const deadline = Date.now() + openingMs;
  while (observer.present.length < workers.length * stage.partitions) {
    if (Date.now() > deadline) throw new Error(`the workers did not start within ${openingMs} ms; see their logs`);
    await sleep(lookEveryMs);
  }
}

/**
 * When all is quiet again, a few jobs start, and the worker that has most of them is killed: with nothing else in the way,
 * each of them must be claimed again within lease + 1 s.
 */
async function encore(
  stage: Stage,
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
  for (const deadline = Date.now() + encoreMs; runs.length < encoreJobs; await sleep(lookEveryMs)) {
    runs.push(...reader.read().filter(({ e, key }) => e === 'run' && key.startsWith('encore-')));
    if (Date.now() > deadline) return [`only ${runs.length} of ${encoreJobs} jobs started within ${encoreMs} ms`];
  }
  const counts = new Map<number, number>();
  for (const { pid } of runs) counts.set(pid, (counts.get(pid) ?? 0) + 1);
  const [busiest] = [...counts].sort(([, a], [, b]) => b - a)[0]!;
  const from = Date.now();
  actors.find(({ pid }) => pid === busiest)?.signal('SIGKILL');
  log.write({ f: 'fault', name: 'encore', pid: busiest, from, to: from });
  return [];
}

async function endAll(actors: readonly Actor[]): Promise<string[]> {
  const ended = await Promise.all(actors.map((actor) => actor.end()));
  return actors.flatMap(({ name }, i) => (ended[i] ? [] : [`${name} did not end when it was asked to`]));
}

/** Waits until nothing is left to do, by the raw keys; returns what is left when it takes too long. */
async function drain(
  stage: Stage,
  observer: Observer,
  actors: readonly Actor[],
  limitMs: number,
): Promise<string | undefined> {
  const deadline = Date.now() + limitMs;
  let quiet = 0;
  for (;;) {
    let left: string;
    try {
      left = await leftToDo(stage, observer, actors);
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

async function leftToDo(stage: Stage, observer: Observer, actors: readonly Actor[]): Promise<string> {
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
      count(`active:${session}`, (await raw.hlen(`${base}active:${session}`)) - sessionFields);
    }
  }
  const living = new Set(actors.map(({ pid }) => pid));
  for (const { session, pid } of observer.present) if (!living.has(pid)) left.push(`session ${session} of a dead process`);
  return left.join(', ');
}
