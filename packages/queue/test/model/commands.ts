// What can happen, as commands that fast-check draws, orders and shortens. A command names its objects by number ("the third
// session that is there"), so that a shortened sequence still makes sense; one that finds nothing to do does nothing.
//
// Redis' clock cannot be set, so time passes by hand: whatever waits for a time waits for one that no test lives to see, and a
// command moves that time into the past.
import fc from 'fast-check';
import { bytes, leaseMs, word } from './calls.js';
import { flag, optionsOf, packedOf } from './model.js';
import type { ModelJob, NewItem } from './model.js';
import { Moment, toWire } from './foretold.js';
import { makeJob, makePayload } from './world.js';
import type { Producer, Worker, World } from './world.js';

const ownIds = ['own1', 'own2', 'own3', 'own4', 'öwn5', 'own 6'].map(toWire);
const groups = ['a', 'b', 'c', 'grün'];
const uniqueKeys = ['u1', 'ü2', 'u3'];
const prints = ['aaaa', 'bbbb', 'cccc'];
const scheduleNames = ['nightly', 'hourly'];
const rememberOwnMs = 3_600_000;
const keepResultMs = 5_000_000;
const pauseMs = 10_000_000;
const maxJobs = 60;
const maxSessions = 4;
const logLinesKept = 3;

export interface Command {
  kind: string;
  [name: string]: unknown;
}

interface Definition {
  arbitrary: fc.Arbitrary<Command>;
  run: (world: World, command: never) => Promise<void>;
}

const definitions: Record<string, Definition> = {};

function define<T extends object>(
  kind: string,
  fields: { [K in keyof T]: fc.Arbitrary<T[K]> },
  run: (world: World, command: T) => Promise<unknown>,
): void {
  const arbitrary = fc.record({ kind: fc.constant(kind), ...fields }) as fc.Arbitrary<Command>;
  definitions[kind] = { arbitrary, run: async (world, command) => void (await run(world, command)) };
}

/** Commands with how often each comes, relative to the others. */
export function anyOf(weights: Record<string, number>): fc.Arbitrary<Command> {
  const options = Object.entries(weights).map(([kind, weight]) => ({ weight, arbitrary: definitions[kind]!.arbitrary }));
  return fc.oneof(...options);
}

export function runCommand(world: World, command: Command): Promise<void> {
  return definitions[command.kind]!.run(world, command as never);
}

export const allKinds = (): string[] => Object.keys(definitions);

const number = fc.nat(999);
const few = fc.integer({ min: 1, max: 4 });
const sometimes = (oneIn: number) => fc.nat(oneIn - 1).map((drawn) => drawn === 1);
/** Mostly the usual one: a list that is alone is taken from the short way. */
const priority = fc.oneof({ weight: 3, arbitrary: fc.constant(3) }, { weight: 2, arbitrary: fc.nat(5) });
const payload = fc.nat(0xffff);

function pick<T>(list: readonly T[], at: number): T | undefined {
  return list.length === 0 ? undefined : list[at % list.length];
}

// ── Producers ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The next call of a lane; `copies` more of it arrive, because its reply was lost. */
async function addCall(
  world: World,
  at: number,
  copies: number,
  send: (producer: Producer, lane: string, seq: number) => Promise<unknown>,
): Promise<void> {
  const producer = pick(world.producers, at)!;
  const lane = pick(producer.lanes, at >> 1)!;
  const seq = ++lane.seq;
  await world.send(`add by ${producer.name}`, () => send(producer, lane.name, seq));
  for (let i = 0; i < copies; i++) await send(producer, lane.name, seq);
}

define<{ by: number; jobs: { priority: number; payload: number }[]; copies: number }>(
  'add',
  { by: number, jobs: fc.array(fc.record({ priority, payload }), { minLength: 1, maxLength: 5 }), copies: fc.nat(2) },
  async (world, { by, jobs, copies }) => {
    if (world.model.jobs.size > maxJobs) return;
    const made = jobs.map((job) => makeJob(world.name('j'), job.payload, job.priority));
    await addCall(world, by, copies, ({ name }, lane, seq) => world.calls.add(name, lane, seq, made));
  },
);

interface ItemDraw {
  priority: number;
  payload: number;
  own: number;
  group: number;
  unique: number;
  window: boolean;
  when: number;
}

const itemDraw = fc.record<ItemDraw>({
  priority,
  payload,
  own: fc.nat(11),
  group: fc.nat(7),
  unique: fc.nat(8),
  window: fc.boolean(),
  when: fc.nat(7),
});

function makeItem(world: World, draw: ItemDraw): NewItem {
  const own = ownIds[draw.own];
  const group = groups[draw.group];
  const unique = uniqueKeys[draw.unique];
  const id = own ?? world.name('k');
  const windowMs = unique !== undefined && draw.window ? pauseMs : undefined;
  const options = {
    ...(own !== undefined && { w: rememberOwnMs }),
    ...(group !== undefined && { g: group }),
    ...(unique !== undefined && { u: unique, ...(windowMs !== undefined && { uw: windowMs }) }),
  };
  const text = Object.keys(options).length > 0 ? toWire(JSON.stringify(options)) : '';
  const flags = (text === '' ? 0 : flag.settles) | (group === undefined ? 0 : flag.grouped);
  const job = makeJob(id, draw.payload, draw.priority, text, flags);
  return {
    ...{ id, job, own: own !== undefined, unique: unique === undefined ? '' : toWire(unique), window: windowMs ?? '' },
    ...{ delay: draw.when === 0 ? world.delayMs() : draw.when === 1 ? 0 : '' },
    // A date of long ago is no reason to overtake others.
    ...{ runAt: draw.when === 2 ? 0 : draw.when === 3 ? Date.now() + world.delayMs() : '' },
    ...{ refs: [], policy: '', detail: '', print: '', title: '' },
  };
}

define<{ by: number; items: ItemDraw[]; copies: number }>(
  'addEach',
  { by: number, items: fc.array(itemDraw, { minLength: 1, maxLength: 4 }), copies: fc.nat(1) },
  async (world, { by, items, copies }) => {
    if (world.model.jobs.size > maxJobs) return;
    const made = items.map((draw) => makeItem(world, draw));
    await addCall(world, by, copies, ({ name }, lane, seq) => world.calls.addEach(name, lane, seq, made));
  },
);

define<{ by: number; item: ItemDraw; plain: boolean; arrived: boolean; late: boolean; copies: number }>(
  'repeatUnderItsName',
  { by: number, item: itemDraw, plain: fc.boolean(), arrived: fc.boolean(), late: fc.boolean(), copies: fc.nat(1) },
  async (world, { by, item, plain, arrived, late, copies }) => {
    if (world.model.jobs.size > maxJobs) return;
    const producer = pick(world.producers, by)!;
    const { name } = producer;
    // The lane of an unanswered call is never used again.
    const [lane] = producer.lanes.splice(by % producer.lanes.length, 1, producer.newLane());
    const seq = ++lane!.seq;
    const made = makeItem(world, { ...item, own: 99 });
    const options = { ...optionsOf(made.job), w: rememberOwnMs };
    const owned: NewItem = {
      ...made,
      own: true,
      job: makeJob(made.id, item.payload, item.priority, toWire(JSON.stringify(options)), made.job.flags | flag.settles),
    };
    const bare = makeJob(made.id, item.payload, item.priority);
    const original = () =>
      plain ? world.calls.add(name, lane!.name, seq, [bare]) : world.calls.addEach(name, lane!.name, seq, [owned]);
    if (arrived) await original();
    for (let i = 0; i <= copies; i++) await world.calls.addEach(name, `=${lane!.name}`, seq, [owned]);
    if (late) await original();
  },
);

define<{ by: number }>('forgetProducer', { by: number }, async (world, { by }) => {
  const { name } = pick(world.producers, by)!;
  world.echoes = world.echoes.filter(({ of }) => of !== `add by ${name}`);
  await world.calls.command('DEL', [world.calls.keys.producer + name], (model) => model.producers.delete(name));
});

define<{ messages: number[] }>(
  'push',
  { messages: fc.array(payload, { minLength: 1, maxLength: 3 }) },
  async (world, { messages }) => {
    if (world.model.inbox.length > 10) return;
    const texts = messages.map((n) => (n % 3 === 0 ? `not JSON ${n} \xff` : JSON.stringify({ data: [n] })));
    const push = [world.calls.keys.inbox, ...texts.map(bytes)];
    await world.calls.command('RPUSH', push, (model) => model.inbox.push(...texts));
  },
);

/** Two workers may see the same messages; only one of them takes them. */
define<{ by: number; count: number; twice: boolean; copies: number }>(
  'takeInbox',
  { by: number, count: few, twice: fc.boolean(), copies: fc.nat(1) },
  async (world, { by, count, twice, copies }) => {
    for (let takers = twice ? 2 : 1, seen: string[] | undefined; takers > 0; takers--) {
      seen ??= (await world.calls.peek(count)) as string[];
      const [taken, ...messages] = seen as [string, ...string[]];
      if (messages.length === 0) return;
      const items = messages.map((message) => foreignItem(world.name('m'), message));
      const inbox = { taken: Number(taken), count: messages.length };
      await addCall(world, by + takers, copies, ({ name }, lane, seq) => world.calls.addEach(name, lane, seq, items, inbox));
    }
  },
);

export function foreignItem(id: string, message: string): NewItem {
  const malformed = message.startsWith('not');
  const job: ModelJob = { ...makeJob(id, 1, 3), payload: message, flags: malformed ? flag.binary : flag.foreign };
  const grave = malformed ? { detail: '{"malformed":true}', print: prints[0]!, title: 'malformed' } : { detail: '', print: '', title: '' };
  return { id, job, own: false, delay: '', runAt: '', unique: '', window: '', refs: [], policy: '', ...grave };
}

// ── Workers ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

function workerAt(world: World, at: number): Worker | undefined {
  return pick([...world.workers.values()], at);
}

function busyWorkerAt(world: World, at: number): Worker | undefined {
  return pick([...world.workers.values()].filter(({ held }) => held.size > 0), at);
}

define<object>('open', {}, async (world) => {
  if (world.workers.size < maxSessions) await world.openWorker();
});

define<{ session: number }>('renew', { session: number }, async (world, { session }) => {
  const worker = workerAt(world, session);
  if (worker) await world.send('renew', () => world.calls.renew(worker.name));
});

define<{ session: number }>('close', { session: number }, async (world, { session }) => {
  const worker = workerAt(world, session);
  if (!worker || worker.lanes.some(({ pending }) => pending)) return;
  if ((await world.send('close', () => world.calls.close(worker.name))) !== 'BUSY') world.workers.delete(worker.name);
});

interface ClaimDraw {
  session: number;
  lane: number;
  want: number;
  short: boolean;
  lost: boolean;
  /** Acknowledges something that is not its own, or no longer. */
  forged: number;
}

const claimDraw = {
  session: number,
  lane: fc.nat(1),
  want: fc.nat(7),
  short: fc.boolean(),
  lost: sometimes(4),
  forged: fc.nat(19),
};

define<ClaimDraw>('claim', claimDraw, async (world, draw) => {
  const worker = workerAt(world, draw.session) ?? (await world.openWorker());
  await claimAs(world, worker, draw);
});

/** A sleeper finds a token and looks. */
define<ClaimDraw>('wake', claimDraw, async (world, draw) => {
  const worker = workerAt(world, draw.session);
  if (!worker) return;
  const { keys } = world.calls;
  const token = await world.calls.command('LPOP', [keys.wake], (model) => (model.wake = false));
  if (token !== null) await claimAs(world, worker, { ...draw, short: false });
});

async function claimAs(world: World, worker: Worker, { lane, want, short, lost, forged }: ClaimDraw): Promise<void> {
  const fresh = worker.lanes[lane]!.pending === undefined;
  const acks = fresh ? worker.acks.splice(0) : [];
  if (fresh && forged < 3) acks.push(...forgedAcks(world, worker, forged));
  const priority = short && worker.plainList >= 0 && !worker.isIdle ? worker.plainList : -1;
  await world.claim(worker, lane, want, priority, acks, lost ? 'lost' : 'heard');
}

function forgedAcks(world: World, worker: Worker, how: number) {
  const others = [...world.model.sessions.values()].filter(({ name }) => name !== worker.name);
  const stolen = others.flatMap(({ active }) => [...active]).slice(0, 1);
  const stale = [...worker.held].slice(0, 1).map(([id, { token }]): [string, string] => [id, String(Number(token) - 1)]);
  const drawn = how === 0 ? stolen : how === 1 ? stale : [['nobody', '1'] as [string, string]];
  return drawn.map(([id, token]) => ({ id, token }));
}

interface FinishDraw {
  session: number;
  job: number;
  how: number;
  when: number;
  keep: boolean;
  stale: boolean;
  copies: number;
}

const finishDraw = {
  session: number,
  job: number,
  how: fc.nat(9),
  when: fc.nat(3),
  keep: fc.boolean(),
  stale: sometimes(8),
  copies: fc.nat(1),
};
const dies = 6;

/** A handler ends, one way or another. */
define<FinishDraw>('finish', finishDraw, finish);
define<FinishDraw>('die', finishDraw, (world, draw) => finish(world, { ...draw, how: dies }));

async function finish(world: World, { session, job, how, when, keep, stale, copies }: FinishDraw): Promise<void> {
  const worker = busyWorkerAt(world, session);
  const held = worker && pick([...worker.held], job);
  if (!held) return;
  const [id, { token: real, plain }] = held;
  const token = stale ? String(Number(real) - 1) : real;
  if (!stale) world.forget(worker, id);
  if (how < 4 && plain && !stale) return void worker.acks.push({ id, token });
  const tried = JSON.stringify([1, 1, 'error', 'w', 'Error', `no ${job}`, '']);
  const end = { id, token, keepMs: 0, result: '', tried: '', detail: '', print: '', title: '' };
  const delay = world.delayMs();
  const send = () => {
    if (how < dies) {
      const kept = { keepMs: keep ? keepResultMs : 0, result: makePayload(job).payload };
      return world.calls.settle(worker.name, [{ ...end, outcome: 'done', ...kept }]);
    }
    if (how === dies) {
      const print = prints[job % prints.length]!;
      const grave = { tried, detail: `{"job":${job}}`, print, title: `died of ${print} ${keep}` };
      return world.calls.settle(worker.name, [{ ...end, outcome: 'dead', ...grave }]);
    }
    const why = how === 7 ? 'snoozed' : how === 8 ? 'returned' : 'failed';
    const at = { delay: when === 0 ? delay : when === 1 ? 0 : '', runAt: when === 2 ? 5 : '' } as const;
    return world.calls.retry(worker.name, [{ id, token, why, ...at, tried: why === 'failed' ? tried : '' }]);
  };
  const reply = await world.send('finish', send);
  if (word(reply) === 'LEASE_LOST') world.workers.delete(worker.name);
  for (let i = 0; i < copies; i++) await send();
}

define<{ session: number; job: number; log: boolean; value: number; stale: boolean }>(
  'note',
  { session: number, job: number, log: fc.boolean(), value: number, stale: sometimes(8) },
  async (world, { session, job, log, value, stale }) => {
    const worker = busyWorkerAt(world, session);
    const held = worker && pick([...worker.held], job);
    if (!held) return;
    const [id, hold] = held;
    const token = stale ? String(Number(hold.token) + 1) : hold.token;
    const kind = log ? 'log' : 'progress';
    hold.plain = hold.plain && stale;
    await world.send('note', () => world.calls.note(worker.name, id, token, kind, `"${value}"`, logLinesKept));
  },
);

define<{ chunk: number; until: boolean; late: boolean }>(
  'rescue',
  { chunk: few, until: fc.boolean(), late: fc.boolean() },
  async (world, { chunk, until, late }) => {
    for (;;) {
      const [answer, session, , more] = (await world.calls.rescue(chunk)) as [string, string, number, number];
      if (answer !== 'RESCUED') return;
      // It does not know yet; whatever it says now is refused.
      if (late && more === 1) {
        await world.calls.open(session);
        await world.calls.renew(session);
      }
      if (!until) return;
    }
  },
);

/** Any call of before arrives once more; nobody reads its answer. */
define<{ call: number }>('echo', { call: number }, async (world, { call }) => {
  await pick(world.echoes, call)?.send();
});

define<object>('flushScripts', {}, (world) => world.calls.flushScripts());

/** As after a restore, or a failover to a server whose clock is behind. */
define<{ ahead: number }>('tokenAhead', { ahead: number }, async (world, { ahead }) => {
  const token = String(Math.max(Number(world.model.token), (Date.now() + 60_000) * 1000) + ahead);
  await world.calls.command('HSET', [world.calls.keys.cfg, 'token', token], (model) => (model.token = token));
});

// ── Operators ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Any id that means something, and one that does not. */
function anyId(world: World, at: number): string {
  const { jobs, tombstones, ended } = world.model;
  return pick([...jobs.keys(), ...tombstones.keys(), ...ended.keys(), 'nobody'], at)!;
}

define<{ job: number; keep: boolean }>('cancel', { job: number, keep: fc.boolean() }, async (world, { job, keep }) => {
  const id = anyId(world, job);
  const memoryMs = keep ? keepResultMs : 0;
  await world.send('cancel', () => world.calls.cancel(id, memoryMs));
});

const ruleChanges: Record<string, unknown>[] = [
  { paused: true },
  { paused: null },
  { maxActive: 1 },
  { maxActive: 4 },
  { maxActive: null },
  { rateMax: 3, ratePerMs: pauseMs },
  { rateMax: 6, ratePerMs: pauseMs },
  { rateMax: null, ratePerMs: null },
  { keyMaxActive: 1 },
  { keyMaxActive: 2 },
  { keyMaxActive: null },
  { keyRateMax: 2, keyRatePerMs: pauseMs },
  { keyRateMax: 4, keyRatePerMs: pauseMs },
  { keyRateMax: null, keyRatePerMs: null },
  { events: 10_000 },
  { events: null },
];
const noRules = Object.fromEntries(
  ruleChanges.flatMap((change) => Object.keys(change)).map((name) => [name, null]),
);

define<{ change: number }>('rule', { change: fc.nat(ruleChanges.length + 3) }, async (world, { change }) => {
  const changes = ruleChanges[change] ?? noRules;
  await world.send('rule', () => world.calls.rule(changes));
});

export async function dropRules(world: World): Promise<void> {
  await world.calls.rule(noRules);
}

define<{ job: number; what: number }>('read', { job: number, what: fc.nat(4) }, async (world, { job, what }) => {
  const id = anyId(world, job);
  if (what === 0) await world.calls.counts();
  else if (what === 1) await world.calls.ask(id);
  else if (what === 2) await world.calls.peek(1 + (job % 4));
  else await world.calls.look(id);
});

define<{ field: number; by: number }>('tally', { field: number, by: few }, async (world, { field, by }) => {
  await world.calls.tally([
    [`w${field % 3}`, by],
    [`r${field % 2}`, 1],
  ]);
});

define<{ partitions: number }>('declare', { partitions: few }, (world, { partitions }) => world.calls.declare(partitions));

define<{ limit: number }>('sweep', { limit: few }, (world, { limit }) => world.calls.sweep(limit));

// ── Dead letters ────────────────────────────────────────────────────────────────────────────────────────────────────────

interface MoveDraw {
  operation: number;
  letters: number[];
  copies: number;
}
const moveDraw = { operation: fc.nat(3), letters: fc.array(number, { maxLength: 4 }), copies: fc.nat(1) };

function chosenLetters(world: World, numbers: number[]): string[] {
  const ids = [...world.model.dead.keys(), ...[...world.model.jobs.keys()].slice(0, 2), 'nobody'];
  return numbers.map((at) => pick(ids, at)!);
}

for (const kind of ['replay', 'discard'] as const) {
  define<MoveDraw>(kind, moveDraw, async (world, { operation, letters, copies }) => {
    const ids = chosenLetters(world, letters);
    const name = `${kind}:${operation}`;
    await world.send(kind, () => world.calls[kind](name, ids));
    for (let i = 0; i < copies; i++) await world.calls[kind](name, ids);
  });
}

define<{ letter: number; payload: number; conflict: boolean; copies: number }>(
  'edit',
  { letter: number, payload, conflict: sometimes(4), copies: fc.nat(1) },
  async (world, { letter, payload, conflict, copies }) => {
    const { dead, jobs } = world.model;
    const id = pick([...(dead.size > 0 ? dead : jobs).keys()], letter);
    const job = id === undefined ? undefined : world.model.jobs.get(id);
    if (!job) return;
    const seen = conflict ? `${packedOf(job)}!` : packedOf(job);
    const replacement = { ...job, payload: makePayload(payload).payload };
    for (let i = 0; i <= copies; i++) await world.calls.edit(job.id, seen, replacement);
  },
);

define<{ maxCount: number; old: boolean }>('retain', { maxCount: fc.nat(4), old: fc.boolean() }, async (world, { maxCount, old }) => {
  const retention = maxCount === 0 ? undefined : old ? { maxAgeMs: pauseMs } : { maxCount };
  const { cfg } = world.calls.keys;
  const args = retention ? ['HSET', cfg, 'retention', JSON.stringify(retention)] : ['HDEL', cfg, 'retention'];
  await world.calls.command(args[0]!, args.slice(1), (model) => (model.retention = retention));
});

/** Letters grow old. */
define<{ letter: number }>('lettersAge', { letter: number }, async (world, { letter }) => {
  const chosen = pick([...world.model.dead], letter);
  if (!chosen) return;
  const [id, found] = chosen;
  const { calls } = world;
  const score = past(world);
  await calls.link.call('ZADD', [calls.keys.dead, 'XX', score, bytes(id)]);
  const group = calls.keys.deadGroup + found.print;
  await calls.command('ZADD', [group, 'XX', score, bytes(id)], () => (found.died = new Moment(score)));
});

define<{ limit: number }>('expire', { limit: few }, (world, { limit }) => world.calls.expire(limit));

define<{ what: number; letter: number; newest: boolean; limit: number }>(
  'readLetters',
  { what: fc.nat(3), letter: number, newest: fc.boolean(), limit: few },
  (world, { what, letter, newest, limit }) => {
    const ids = [...world.model.dead.keys()];
    const print = what % 2 === 0 ? '' : pick(prints, letter)!;
    if (what === 0) return world.calls.letters([...ids, 'nobody'], limit * 100);
    if (what === 1) return world.calls.causes(prints);
    const at = pick(ids, letter);
    const diedMs = at === undefined ? 5 : world.model.dead.get(at)!.died.ms;
    return world.calls.deaths(print, diedMs, at ?? '', newest ? 'newest' : 'oldest', limit);
  },
);

// ── Chains ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

export const refOf = (id: string) => `q:0/${id}`;
export const idOf = (ref: string) => ref.slice(ref.indexOf('/') + 1);

interface BlockDraw {
  by: number;
  item: ItemDraw;
  on: number[];
  policy: number;
  /** How many of the steps happen before its maker dies. */
  steps: number;
}

/** A job that waits for others, made as chain.ts makes it: first those learn of it, then it is added. */
define<BlockDraw>(
  'block',
  { by: number, item: itemDraw, on: fc.array(number, { minLength: 1, maxLength: 3 }), policy: fc.nat(2), steps: fc.nat(5) },
  async (world, { by, item, on, policy, steps }) => {
    if (world.model.jobs.size > maxJobs) return;
    const made = makeItem(world, { ...item, when: 7, unique: 99 });
    const dependencies = [...new Set(on.map((at) => anyId(world, at)))].filter((id) => id !== made.id);
    const refs: string[] = [];
    const ended: { id: string; outcome: string }[] = [];
    for (const id of dependencies) {
      const outcome = word(await world.send('depend', () => world.calls.depend(id, refOf(made.id), 50_000_000)));
      if (outcome !== 'UNKNOWN') refs.push(refOf(id));
      if (!['UNKNOWN', 'WAITING'].includes(outcome)) ended.push({ id, outcome });
    }
    if (refs.length === 0 || steps === 0) return;
    const blocked = { ...made, refs, policy: ['cancel', 'run', 'wait'][policy]! };
    await addCall(world, by, 0, ({ name }, lane, seq) => world.calls.addEach(name, lane, seq, [blocked]));
    if (steps === 1) return;
    for (const { id, outcome } of ended) await world.calls.unblock(made.id, refOf(id), outcome);
  },
);

/** A notice reaches the job that waits, and is then removed; or it is delivered twice. */
define<{ notice: number; keep: boolean }>('deliver', { notice: number, keep: sometimes(4) }, async (world, { notice, keep }) => {
  const { chained } = world.model;
  if (chained.length === 0) return;
  const at = notice % chained.length;
  const { target, id, outcome } = chained[at]!;
  await world.send('deliver', () => world.calls.unblock(idOf(target), refOf(id), outcome));
  if (keep) return;
  const text = world.calls.snapshot.get('chained')!.items[at]!;
  const first = world.calls.snapshot.get('chained')!.items.indexOf(text);
  await world.calls.command('LREM', [world.calls.keys.chained, 1, bytes(text)], (model) => model.chained.splice(first, 1));
});

define<{ chain: number; step: number }>('chain', { chain: fc.nat(2), step: fc.nat(3) }, async (world, { chain, step }) => {
  const name = `chain${chain}`;
  if (step === 0) await world.calls.chainTake(1, pauseMs + chain * 1e6);
  else if (step === 1) await world.calls.chainDrop(name);
  else await world.calls.chainKeep(name, `{"step":${step}}`, pauseMs + chain * 1e6);
});

// ── Schedules ───────────────────────────────────────────────────────────────────────────────────────────────────────────

define<{ name: number; when: number; spec: number }>(
  'schedule',
  { name: fc.nat(1), when: fc.nat(1), spec: fc.nat(2) },
  async (world, { name, when, spec }) => {
    const next = Date.now() + world.delayMs();
    const text = toWire(JSON.stringify({ when: `every ${when}`, payload: `pä${spec}` }));
    await world.send('schedule', () => world.calls.schedule(scheduleNames[name]!, text, next));
  },
);

define<{ name: number }>('unschedule', { name: fc.nat(1) }, (world, { name }) => world.calls.unschedule(scheduleNames[name]!));

interface TickDraw {
  name: number;
  comes: boolean;
  jobs: number;
  item: ItemDraw;
  last: boolean;
  off: boolean;
  copies: number;
}

/** Several schedulers see that a schedule is due. */
define<TickDraw>(
  'tick',
  { name: fc.nat(1), comes: fc.boolean(), jobs: fc.nat(2), item: itemDraw, last: sometimes(4), off: sometimes(5), copies: fc.nat(2) },
  async (world, { name, comes, jobs, item, last, off, copies }) => {
    if (world.model.jobs.size > maxJobs) return;
    const schedule = scheduleNames[name]!;
    if (comes) await letTickCome(world, schedule);
    await world.calls.due(2);
    const dueMs = (world.model.ticks.get(schedule) ?? 7) + (off ? 1 : 0);
    const made = makeItem(world, { ...item, own: 99 });
    const options = { ...optionsOf(made.job), w: rememberOwnMs };
    const jobAt = (i: number) =>
      makeJob(`${schedule}@${dueMs + i}`, item.payload, item.priority, toWire(JSON.stringify(options)), made.job.flags | flag.settles);
    const list = Array.from({ length: jobs }, (_, i) => jobAt(i));
    const next = last ? '' : Date.now() + world.delayMs();
    await world.send('tick', () => world.calls.tick(schedule, dueMs, next, list));
    for (let i = 0; i < copies; i++) await world.calls.tick(schedule, dueMs, next, list);
  },
);

// ── Time ────────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A moment of the past, each another one. */
export function past(world: World): number {
  return Math.floor(Date.now() - 1e8 - world.delayMs() / 100);
}

export async function setScore(world: World, key: string, member: string, score: number, mean: () => void): Promise<void> {
  // Whoever sleeps until that time wakes up.
  for (const worker of world.workers.values()) worker.hungry = true;
  await world.calls.command('ZADD', [key, 'XX', score, bytes(member)], mean);
}

define<{ job: number }>('dueComes', { job: number }, async (world, { job }) => {
  const { delayed } = world.model;
  const waiting = [...delayed].filter(([, at]) => at.ms > Date.now() + 1e6);
  const chosen = pick(waiting, job);
  if (!chosen) return;
  const score = past(world);
  await setScore(world, world.calls.keys.delayed, chosen[0], score, () => delayed.set(chosen[0], new Moment(score)));
});

define<{ session: number }>('leaseEnds', { session: number }, async (world, { session }) => {
  const chosen = pick(world.model.liveSessions, session);
  if (!chosen) return;
  const score = past(world);
  await setScore(world, world.calls.keys.sessions, chosen.name, score, () => (chosen.at = new Moment(score)));
});

/** Redis was away for longer than a lease: nobody could renew, all leases are over. */
define<{ cut: boolean }>('outage', { cut: fc.boolean() }, async (world, { cut }) => {
  if (world.model.sessions.size === 0) return;
  const renewed = Date.now() - 2 * leaseMs;
  const { keys } = world.calls;
  await world.calls.command('HSET', [keys.cfg, 'renewed', renewed], (model) => (model.renewed = new Moment(renewed)));
  // Until somebody is heard of again, and for one lease from then on.
  world.calls.ledger.outage(Date.now() + leaseMs / 2);
  if (!cut) return;
  for (const chosen of world.model.liveSessions) {
    const score = past(world);
    await setScore(world, keys.sessions, chosen.name, score, () => (chosen.at = new Moment(score)));
  }
});

define<object>('graceEnds', {}, async (world) => {
  if (!world.model.graceUntil) return;
  world.calls.ledger.outage(0);
  const { cfg } = world.calls.keys;
  const renewed = Date.now();
  const set = ['graceUntil', renewed - 1000, 'renewed', renewed];
  await world.calls.command('HSET', [cfg, ...set], (model) => {
    model.graceUntil = new Moment(renewed - 1000);
    model.renewed = new Moment(renewed);
  });
});

/** The clock of the server was put back: what was written before lies in the future. */
define<object>('clockGoesBack', {}, async (world) => {
  const { keys } = world.calls;
  if (!world.model.renewed) return;
  const renewed = Date.now() + 3 * leaseMs;
  world.calls.ledger.outage(0);
  await world.calls.command('HSET', [keys.cfg, 'renewed', renewed], (model) => (model.renewed = new Moment(renewed)));
  for (const session of world.model.liveSessions) {
    const score = session.at.ms + 3 * leaseMs;
    await setScore(world, keys.sessions, session.name, score, () => (session.at = new Moment(score)));
  }
});

define<{ key: number }>('uniqueEnds', { key: number }, async (world, { key }) => {
  const chosen = pick([...world.model.uniques].filter(([, { ends }]) => ends), key);
  if (!chosen) return;
  await world.calls.command('DEL', [bytes(world.calls.keys.unique + chosen[0])], (model) => model.uniques.delete(chosen[0]));
});

define<{ job: number }>('memoryEnds', { job: number }, async (world, { job }) => {
  const chosen = pick([...world.model.ended], job);
  if (chosen) await endMemory(world, chosen[0]);
});

/** The logs of a job that is remembered end by themselves, at the same time. */
export async function endMemory(world: World, id: string): Promise<void> {
  const { ended, logs } = world.model;
  const score = past(world);
  if (logs.get(id)?.ends) await world.calls.command('DEL', [bytes(world.calls.keys.logs + id)], () => logs.delete(id));
  await setScore(world, world.calls.keys.ended, id, score, () => (ended.get(id)!.until = new Moment(score)));
}

/** The oldest claims leave the window of the rate limit. */
define<{ count: number }>('windowMoves', { count: few }, async (world, { count }) => {
  const { model, calls } = world;
  const before = model.rate;
  if (before.length === 0) return;
  for (const worker of world.workers.values()) worker.hungry = true;
  const old = Math.min(count, before.length);
  if (old === before.length) await calls.command('DEL', [calls.keys.rate], () => (model.rate = []));
  for (let i = 0; i < old && old < before.length; i++) {
    const at = before[i]! > Date.now() - pauseMs ? before[i]! - 2 * pauseMs : before[i]!;
    await calls.command('LSET', [calls.keys.rate, i, at], () => (model.rate[i] = at));
  }
});

define<{ group: number; count: number }>('groupWindowMoves', { group: number, count: few }, async (world, { group, count }) => {
  const { model, calls } = world;
  const chosen = pick([...model.groupRate], group);
  if (!chosen) return;
  const [name, times] = chosen;
  for (const worker of world.workers.values()) worker.hungry = true;
  const key = bytes(calls.keys.groupRate + name);
  const old = Math.min(count, times.length);
  if (old === times.length) await calls.command('DEL', [key], () => model.groupRate.delete(name));
  for (let i = 0; i < old && old < times.length; i++) {
    const at = times[i]! > Date.now() - pauseMs ? times[i]! - 2 * pauseMs : times[i]!;
    await calls.command('LSET', [key, i, at], () => (times[i] = at));
  }
  const parked = model.parked.get(name);
  if (parked === undefined || parked < Date.now()) return;
  const score = past(world);
  await setScore(world, calls.keys.parked, name, score, () => model.parked.set(name, score));
});

define<object>('nurseTires', {}, async (world) => {
  const { nurse } = world.model;
  if (!nurse) return;
  const untilMs = Date.now() - 1000;
  const text = `${nurse.session} ${untilMs}`;
  await world.calls.command('HSET', [world.calls.keys.cfg, 'nurse', text], () => (nurse.until = untilMs));
});

define<{ name: number }>('tickComes', { name: fc.nat(1) }, (world, { name }) => letTickCome(world, scheduleNames[name]!));

async function letTickCome(world: World, schedule: string): Promise<void> {
  if (!world.model.ticks.has(schedule)) return;
  const score = past(world);
  await setScore(world, world.calls.keys.ticks, schedule, score, () => world.model.ticks.set(schedule, score));
}

define<{ chain: number }>('chainComes', { chain: number }, async (world, { chain }) => {
  const chosen = pick([...world.model.chains], chain);
  if (!chosen) return;
  const score = past(world);
  await setScore(world, world.calls.keys.chainsDue, chosen[0], score, () => (chosen[1].due = new Moment(score)));
});
