// One random schedule: a few processes with a cache each read, change and invalidate a few values, and everything that can happen
// between any two steps happens at random: replies get lost, commands arrive late, loaders are slow, fail or die with their process,
// what was read takes its time to be opened, large values are compressed and opened by another thread, values are set by hand, leases
// end, groups are swept, values, generations and indexes are evicted, notices come late or not at all, clocks go on.
//
// The model is a number per value. A change commits the next version and then invalidates; when the invalidation says `applied`,
// that version becomes the floor: whoever asks from then on must not get an older one, from Redis or from a load. Copies in another
// process may be older until its notice has been delivered; copies in the process itself may not.
// First, because it replaces what the cache imports.
import { makeLarge, ownThreads, type Large } from './threads.js';
import { ManualClock } from '@sluice/base';
import { Cache, defineCache } from '../../src/index.js';
import type { CacheDefinition, CacheFamily } from '../../src/index.js';
import type { WatchHandlers } from '../../src/cache.js';
import { Network, type Sabotage } from './network.js';
import type { Server } from './server.js';

export interface Violation {
  seed: number;
  said: string;
  steps: string[];
}

interface Row {
  version: number;
  large?: Large;
}

interface Process {
  id: number;
  clock: ManualClock;
  cache: Cache;
  rows: CacheFamily<string, Row>;
  isAlive: boolean;
  /** Readers and writers that have no answer yet. */
  waiting: number;
  notices: { key: string; version: number }[];
  watch: WatchHandlers | undefined;
  /** Per value: what this process itself invalidated, or was told of. */
  known: Map<string, number>;
}

interface LoadUnderWay {
  process: Process;
  key: string;
  seen: number | undefined;
  resolve: (row: Row) => void;
  reject: (error: Error) => void;
}

/** A value that was read or is to be written, and that its schema or another thread works on. */
interface Opening {
  /** Threads do not tell for whom they work; what comes to a dead process changes nothing. */
  process?: Process;
  open: () => void;
}

const keys = ['a', 'b'];
/** A value belongs to one of each. */
const groups = ['of', 'too'] as const;
/** So few that the groups of one value push out those of the other. */
const fewCopies = 3;
const stepsPerSchedule = 32;
/** A read, a lease, a fill and what follows from them, if nothing gets in their way. */
const flowRounds = 4;
/** So often, and what was missing is mostly loaded and filled. */
const loadFlows = 3;
/** Healing takes some rounds of carrying out, delivering and waiting; a schedule that needs more hangs. */
const healingRounds = 400;
const ttlMs = 10_000;
/** They take three times as long as others. */
const largeShare = 0.02;

export class Schedule {
  readonly seed: number;
  readonly #random: () => number;
  readonly #prefix: string;
  readonly #server: Server;
  readonly #network: Network;
  readonly #processes: Process[] = [];
  readonly #loads: LoadUnderWay[] = [];
  readonly #openings: Opening[] = [];
  readonly #committed = new Map<string, number>();
  readonly #floor = new Map<string, number>();
  readonly #steps: string[] = [];
  /** How often something goes wrong: in calm weather values live long enough to be invalidated. */
  readonly #storm: number;
  readonly #hasNear: boolean;
  readonly #hasGroups: boolean;
  /** Whether values are small, small with a schema that answers when the schedule says so, or opened by another thread when it says so. */
  readonly #kind: 'small' | 'checked' | 'large';
  readonly #stale: { staleMs?: number; staleIfErrorMs?: number };
  #violation: string | undefined;

  constructor(seed: number, prefix: string, server: Server, sabotage?: Sabotage) {
    this.seed = seed;
    this.#random = makeRandom(seed);
    this.#prefix = prefix;
    this.#server = server;
    this.#network = new Network(
      server,
      (changes) => {
        for (const process of this.#processes) process.notices.push(...changes);
      },
      sabotage,
    );
    this.#storm = [0.1, 0.4, 1.5][this.#pick(3)]!;
    this.#hasNear = this.#chance(0.5);
    this.#hasGroups = this.#chance(0.5);
    this.#kind = this.#chance(largeShare) ? 'large' : this.#chance(0.3) ? 'checked' : 'small';
    this.#stale = this.#chance(0.5) ? { staleMs: 2 * ttlMs, staleIfErrorMs: 4 * ttlMs } : {};
  }

  async run(): Promise<Violation | undefined> {
    const threads = ownThreads(this.#prefix, (open) => this.#openings.push({ open }));
    for (let i = 0; i < 2 + this.#pick(2); i++) this.#startProcess();
    for (let step = 0; step < stepsPerSchedule && this.#violation === undefined; step++) {
      await this.#step();
      await settle();
    }
    await this.#heal();
    threads.release();
    for (const process of this.#processes) process.cache.close();
    if (this.#violation === undefined) return undefined;
    return { seed: this.seed, said: this.#violation, steps: this.#steps };
  }

  /** Everything is well again: what was asked is answered, and everybody sees what was committed last. */
  async #heal(): Promise<void> {
    for (let i = 0; i < this.#network.late.length; i++) await this.#network.carryOutLate(0);
    for (const key of keys) this.#change(this.#alive(), key);
    await this.#untilQuiet();
    for (const process of this.#processes) if (process.isAlive) this.#hearAll(process);
    for (const process of this.#processes) {
      if (process.isAlive) for (const key of keys) this.#read(process, key);
    }
    await this.#untilQuiet();
  }

  async #untilQuiet(): Promise<void> {
    const waiting = () => this.#processes.reduce((sum, one) => sum + (one.isAlive ? one.waiting : 0), 0);
    for (let round = 0; waiting() > 0 || this.#network.requests.length > 0; round++) {
      if (this.#violation !== undefined) return;
      if (round > healingRounds) return this.#object(`${waiting()} readers or writers hang`);
      await this.#flowOnce(true);
      await settle();
      if (round % 4 === 3)
        for (const { clock, isAlive } of this.#processes) if (isAlive) await clock.advance(300);
    }
  }

  async #step(): Promise<void> {
    const { requests, replies, late } = this.#network;
    const storm = this.#storm;
    const process = this.#alive();
    const key = keys[this.#pick(keys.length)]!;
    const choices: [weight: number, name: string, act: () => Promise<void> | void][] = [
      [6, `${process.id} reads ${key}`, () => this.#read(process, key)],
      [2, `${process.id} reads all`, () => this.#readAll(process)],
      [4, `${process.id} changes ${key}`, () => this.#change(process, key)],
      [1, `${process.id} sets ${key}`, () => this.#set(process, key)],
      [1, `${process.id} has copies, changes ${key} and reads it`, () => this.#changeAndRead(process, key)],
      [4, 'everything flows', () => this.#flow()],
      [2 * storm, `${process.id} waits 60 ms`, () => process.clock.advance(60)],
      [1, `${process.id} recovers`, () => this.#recover(process)],
      [0.7, `${process.id} waits for longer than the TTL`, () => this.#outlive(process)],
      [0.6 * storm, `${process.id} dies`, () => this.#die(process)],
      [0.8 * storm, `the lease of ${key} ends`, () => this.#remove('lease', `row:${key}`)],
      [0.4 * storm, `the value of ${key} is evicted`, () => this.#remove('value', `row:${key}`)],
    ];
    if (this.#hasGroups) {
      const group = `${groups[this.#pick(groups.length)]}:${key}`;
      choices.push([
        0.4 * storm,
        `the generation of ${group} is evicted`,
        () => this.#remove('generation', group),
      ]);
      choices.push([
        0.4 * storm,
        `the list of indexes of ${group} is evicted`,
        () => this.#remove('indexes', group),
      ]);
      choices.push([1.5, `${process.id} begins to sweep`, () => this.#sweep(process)]);
    }
    if (requests.length > 0) {
      const index = this.#pick(requests.length);
      choices.push([14, `request ${index} is carried out`, () => this.#network.carryOut(index)]);
      choices.push([storm, `request ${index} is given up`, () => this.#network.delay(index)]);
    }
    if (replies.length > 0) {
      const index = this.#pick(replies.length);
      choices.push([14, `reply ${index} arrives`, () => this.#network.deliver(index)]);
      choices.push([storm, `reply ${index} is lost`, () => this.#network.loseReply(index)]);
    }
    if (late.length > 0) {
      const index = this.#pick(late.length);
      choices.push([1, `late request ${index} is carried out`, () => this.#network.carryOutLate(index)]);
    }
    if (this.#loads.length > 0) this.#offerLoads(choices);
    if (this.#openings.length > 0) {
      const index = this.#pick(this.#openings.length);
      choices.push([8, `value ${index} is opened`, () => this.#openings.splice(index, 1)[0]!.open()]);
    }
    if (process.notices.length > 0)
      choices.push([4, `${process.id} hears a notice`, () => this.#hear(process)]);
    if (this.#hasNear)
      choices.push([0.5 * storm, `tracking of ${process.id} breaks`, () => this.#breakWatch(process)]);
    const [, name, act] = this.#draw(choices);
    this.#steps.push(name);
    await act();
  }

  /** Nothing gets lost for a while. */
  async #flow(): Promise<void> {
    for (let round = 0; round < flowRounds; round++) {
      await this.#flowOnce(false);
      await settle();
    }
  }

  async #flowOnce(isToEnd: boolean): Promise<void> {
    await this.#exchange();
    for (const opening of this.#openings.splice(0)) {
      if (isToEnd || this.#chance(0.4)) opening.open();
      else this.#openings.push(opening);
    }
    for (const load of this.#loads.splice(0)) {
      load.seen ??= this.#version(load.key);
      // Some take longer, so that something can happen meanwhile.
      if (isToEnd || this.#chance(0.4)) this.#finish(load);
      else this.#loads.push(load);
    }
  }

  async #changeAndRead(process: Process, key: string): Promise<void> {
    for (const one of keys) this.#read(process, one);
    for (let time = 0; time < loadFlows; time++) await this.#flow();
    // A load leaves no copy, and the notice of its fill drops one that was made since; what is read after that stays.
    this.#hearAll(process);
    for (const one of keys) this.#read(process, one);
    await settle();
    if (this.#kind !== 'small' && this.#chance(0.5)) return this.#changeBehind(process, key);
    await this.#flowOnce(false);
    await settle();
    this.#change(process, key);
    await this.#flow();
    this.#read(process, key);
  }

  /** What was read is outdated before it is opened: no copy of it may stay. */
  async #changeBehind(process: Process, key: string): Promise<void> {
    await this.#exchange();
    await settle();
    this.#change(process, key);
    await settle();
    await this.#exchange();
    await settle();
    this.#hearAll(process);
    for (const opening of this.#openings.splice(0)) opening.open();
    await settle();
    this.#read(process, key);
  }

  /** What was sent is carried out and answered. */
  async #exchange(): Promise<void> {
    const { requests, replies } = this.#network;
    await Promise.all(requests.map(() => this.#network.carryOut(0)));
    while (replies.length > 0) this.#network.deliver(0);
  }

  /** Long enough for its mender to find that Redis is there. */
  async #recover(process: Process): Promise<void> {
    await process.clock.advance(250);
    await this.#flow();
  }

  async #outlive(process: Process): Promise<void> {
    await this.#flow();
    await process.clock.advance(ttlMs + 1);
  }

  /** Long enough for a sweep to begin; what it sends meets whatever comes next. */
  async #sweep(process: Process): Promise<void> {
    await this.#flow();
    await process.clock.advance(1_000);
  }

  #offerLoads(choices: [number, string, () => Promise<void> | void][]): void {
    const index = this.#pick(this.#loads.length);
    const load = this.#loads[index]!;
    const take = () => void this.#loads.splice(index, 1);
    if (load.seen === undefined) {
      choices.push([8, `load ${index} reads`, () => void (load.seen = this.#version(load.key))]);
    } else {
      const end = () => {
        take();
        this.#finish(load);
      };
      choices.push([6, `load ${index} ends`, end]);
      // The moment that matters most: it has read, and what it read is not right any more.
      const process = this.#alive();
      choices.push([
        3,
        `${process.id} changes ${load.key} behind load ${index}`,
        () => this.#change(process, load.key),
      ]);
    }
    const fail = () => {
      take();
      load.reject(new LoadFailed());
    };
    choices.push([this.#storm, `load ${index} fails`, fail]);
  }

  #finish(load: LoadUnderWay): void {
    load.resolve(this.#row(load.seen ?? this.#version(load.key)));
  }

  #startProcess(): void {
    const id = this.#processes.length;
    const clock = new ManualClock(Date.now());
    const process: Process = {
      id,
      clock,
      cache: undefined!,
      rows: undefined!,
      isAlive: true,
      waiting: 0,
      notices: [],
      watch: undefined,
      known: new Map(),
    };
    process.cache = new Cache({
      redis: 'redis://nobody',
      prefix: this.#prefix,
      near: { maxEntries: fewCopies },
      parts: {
        clock,
        random: this.#random,
        wire: this.#network.wireOf(id, () => 0),
        watch: (handlers) => {
          process.watch = handlers;
          return { close: () => {} };
        },
      },
    });
    process.rows = process.cache.open(
      defineCache<string, Row>({
        name: 'row',
        key: (key) => key,
        ttlMs,
        indexed: true,
        nearMs: this.#hasNear ? 5_000 : 0,
        hardTimeoutMs: 1_000_000,
        ...this.#stale,
        ...(this.#hasGroups && { groups: (key: string) => groups.map((group) => [group, key] as const) }),
        ...(this.#kind === 'checked' && { schema: this.#makeSchema(process) }),
        load: (key) =>
          new Promise<Row>((resolve, reject) => {
            if (process.isAlive) this.#loads.push({ process, key, seen: undefined, resolve, reject });
          }),
      }),
    );
    if (this.#hasNear) process.watch!.onState('watching');
    this.#processes.push(process);
  }

  #makeSchema(process: Process): NonNullable<CacheDefinition<string, Row>['schema']> {
    const validate = (value: unknown) =>
      new Promise<{ value: Row }>((resolve) => {
        const open = () => resolve({ value: value as Row });
        if (process.isAlive) this.#openings.push({ process, open });
      });
    return { '~standard': { version: 1, vendor: 'model', validate } };
  }

  #die(process: Process): void {
    process.isAlive = false;
    this.#network.bury(process.id);
    for (let i = this.#openings.length - 1; i >= 0; i--) {
      if (this.#openings[i]!.process === process) this.#openings.splice(i, 1);
    }
    for (let i = this.#loads.length - 1; i >= 0; i--) {
      if (this.#loads[i]!.process === process) this.#loads.splice(i, 1);
    }
    this.#startProcess();
  }

  #read(process: Process, key: string): void {
    const floor = this.#floor.get(key) ?? 0;
    const known = process.known.get(key) ?? 0;
    const nearHits = () => (this.#hasNear ? process.rows.statistics().nearHits : 0);
    const before = nearHits();
    const reading = process.rows.get(key);
    const isCopy = nearHits() > before;
    this.#watchOver(process, reading, ({ version }) => {
      const least = isCopy ? known : Math.max(floor, known);
      if (version < least) this.#object(`${process.id} read ${key}@${version}, at least ${least} was due`);
    });
  }

  #readAll(process: Process): void {
    const floors = keys.map((key) => Math.max(this.#floor.get(key) ?? 0, process.known.get(key) ?? 0));
    const copies = this.#hasNear ? keys.map((key) => process.known.get(key) ?? 0) : floors;
    this.#watchOver(process, process.rows.getMany(keys), (rows) => {
      for (const [index, { version }] of rows.entries()) {
        if (version < copies[index]!)
          this.#object(`${process.id} read ${keys[index]}@${version} with others`);
      }
    });
  }

  /**
   * By somebody who does it right: what is set is looked up under the lease, when it is written as JSON. Who looked it up before might
   * bring back what was changed in between.
   */
  #set(process: Process, key: string): void {
    const row = { toJSON: () => this.#row(this.#version(key)) };
    this.#watchOver(process, process.rows.set(key, row as unknown as Row), () => {});
  }

  /** Commits, and invalidates the way a caller would: the value itself, or one of its groups. */
  #change(process: Process, key: string): void {
    const version = this.#version(key) + 1;
    this.#committed.set(key, version);
    const name = `row:${key}`;
    const group = this.#hasGroups && this.#chance(0.5) ? groups[this.#pick(groups.length)] : undefined;
    const killing = group
      ? process.cache.invalidateGroup([group, key])
      : process.cache.kill({ names: [name], groups: [] });
    // Told to others when it is carried out.
    const removed = `${this.#prefix}:cache:${group ? `generation:{${group}:${key}` : `value:{${name}`}}`;
    const message = this.#network.requests.at(-1);
    if (message?.sender === process.id && message.changes.includes(removed)) message.version = version;
    this.#watchOver(process, killing, (outcome) => {
      raise(process.known, key, version);
      if (outcome === 'applied') raise(this.#floor, key, version);
    });
  }

  #hear(process: Process): void {
    const [{ key, version }] = process.notices.splice(0, 1) as [{ key: string; version: number }];
    this.#learn(process, key, version);
    process.watch?.onChange([key]);
  }

  #hearAll(process: Process): void {
    while (process.notices.length > 0) this.#hear(process);
  }

  #learn(process: Process, redisKey: string, version: number): void {
    const key = /:(\w+)\}$/.exec(redisKey)?.[1];
    if (key !== undefined && keys.includes(key)) raise(process.known, key, version);
  }

  /** All copies go, so nothing that was invalidated before is left; what comes from now on is told again. */
  #breakWatch(process: Process): void {
    process.notices.splice(0);
    process.watch?.onState('blind');
    for (const [key, version] of this.#floor) raise(process.known, key, version);
    process.watch?.onState('watching');
  }

  async #remove(kind: string, name: string): Promise<void> {
    const key = `${this.#prefix}:cache:${kind}:{${name}}`;
    await this.#server.call('DEL', [key]);
    const isWatched = kind === 'value' || kind === 'generation';
    if (isWatched) for (const process of this.#processes) process.notices.push({ key, version: 0 });
  }

  #watchOver<T>(process: Process, promise: Promise<T>, check: (result: T) => void): void {
    process.waiting += 1;
    promise.then(
      (result) => {
        process.waiting -= 1;
        if (process.isAlive) check(result);
      },
      (error: unknown) => {
        process.waiting -= 1;
        if (process.isAlive && !(error instanceof LoadFailed)) this.#object(`unexpected: ${String(error)}`);
      },
    );
  }

  #object(said: string): void {
    this.#violation ??= said;
  }

  #row(version: number): Row {
    return this.#kind === 'large' ? { version, large: makeLarge(this.#prefix) } : { version };
  }

  #version(key: string): number {
    return this.#committed.get(key) ?? 0;
  }

  #alive(): Process {
    const alive = this.#processes.filter(({ isAlive }) => isAlive);
    return alive[this.#pick(alive.length)]!;
  }

  #pick(count: number): number {
    return Math.floor(this.#random() * count);
  }

  #chance(probability: number): boolean {
    return this.#random() < probability;
  }

  #draw<T extends [number, ...unknown[]]>(choices: T[]): T {
    const sum = choices.reduce((total, [weight]) => total + weight, 0);
    let at = this.#random() * sum;
    return choices.find(([weight]) => (at -= weight) < 0) ?? choices[0]!;
  }
}

class LoadFailed extends Error {}

function raise(floors: Map<string, number>, key: string, version: number): void {
  floors.set(key, Math.max(floors.get(key) ?? 0, version));
}

let nextTurn: Promise<void> | undefined;

/** All schedules of this process share the turns of its loop. */
function turn(): Promise<void> {
  nextTurn ??= new Promise((resolve) => {
    setImmediate(() => {
      nextTurn = undefined;
      resolve();
    });
  });
  return nextTurn;
}

/** What was set off by a step has happened: readers gather in one turn of the loop, and are answered in the next. */
async function settle(): Promise<void> {
  for (let turns = 0; turns < 3; turns++) await turn();
}

/** Mulberry32. */
export function makeRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
