// Commands of producers: adds with and without options, their repetitions, and foreign messages.
import * as fc from 'fast-check';
import { CommandSet, number, payload, pick, few } from './define.js';
import { toWire } from './foretold.js';
import type { NewItem } from './model.js';
import { flag, optionsOf } from './state.js';
import type { ModelJob } from './state.js';
import { makeJob } from './world.js';
import type { Producer, World } from './world.js';

export const ofProducers = new CommandSet();
const { define } = ofProducers;

const ownIds = ['own1', 'own2', 'own3', 'own4', 'öwn5', 'own 6'].map(toWire);
const groups = ['a', 'b', 'c', 'grün'];
const uniqueKeys = ['u1', 'ü2', 'u3'];
const rememberOwnMs = 3_600_000;
const uniqueWindowMs = 10_000_000;
/** More jobs than this make the comparison slow and the test no better. */
export const maxJobs = 30;
const maxMessages = 10;

/** Mostly the usual one: a list that is alone is taken from the short way. */
const priority = fc.oneof({ weight: 3, arbitrary: fc.constant(3) }, { weight: 2, arbitrary: fc.nat(5) });

/** The next call of a lane; `copies` more of it arrive, because its reply was lost. */
export async function addCall(
  world: World,
  at: number,
  copies: number,
  send: (producer: Producer, lane: string, seq: number) => Promise<unknown>,
): Promise<void> {
  const producer = pick(world.producers, at)!;
  const lane = pick(producer.lanes, at >> 1)!;
  const seq = ++lane.seq;
  await world.send(`add by ${producer.name}`, () => send(producer, lane.name, seq), copies);
}

/** Some of them come in bales of this size. */
const baleSize = fc.oneof(fc.constant(0), fc.integer({ min: 2, max: 5 }));

define<{ by: number; jobs: { priority: number; payload: number; bale: number }[]; copies: number }>(
  'add',
  {
    by: number,
    jobs: fc.array(fc.record({ priority, payload, bale: baleSize }), { minLength: 1, maxLength: 4 }),
    copies: fc.nat(2),
  },
  async (world, { by, jobs, copies }) => {
    if (world.model.jobs.size > maxJobs) return;
    const bales = new Map<string, string[]>();
    const made = jobs.flatMap((job) => {
      const stem = world.name('j');
      if (job.bale === 0) return [makeJob(stem, job.payload, job.priority)];
      const members = makeBale(stem, job.payload, job.priority, job.bale);
      bales.set(
        `=${stem}`,
        members.map(({ id }) => id),
      );
      return members;
    });
    await addCall(world, by, copies, ({ name }, lane, seq) => world.calls.add(name, lane, seq, made, bales));
  },
);

/** All of them were written at the same time, as JSON. */
function makeBale(stem: string, number: number, priority: number, size: number): ModelJob[] {
  const jobs = Array.from({ length: size }, (_, i) =>
    makeJob(`${stem}.${i}`, (number - (number % 4) + 4 * i) & 0xffff, priority),
  );
  return jobs.map((job) => ({ ...job, created: jobs[0]!.created }));
}

export interface ItemDraw {
  priority: number;
  payload: number;
  own: number;
  group: number;
  unique: number;
  window: boolean;
  labelled: boolean;
  when: number;
}

export const itemDraw = fc.record<ItemDraw>({
  priority,
  payload,
  own: fc.nat(11),
  group: fc.nat(7),
  unique: fc.nat(8),
  window: fc.boolean(),
  labelled: fc.boolean(),
  when: fc.nat(7),
});

export function drawnItem(world: World, draw: ItemDraw): NewItem {
  const own = ownIds[draw.own] ?? (draw.own === ownIds.length ? baledId(world, draw.payload) : undefined);
  const group = groups[draw.group];
  const unique = uniqueKeys[draw.unique];
  const id = own ?? world.name('k');
  const windowMs = unique !== undefined && draw.window ? uniqueWindowMs : undefined;
  const options = {
    ...(own !== undefined && { w: rememberOwnMs }),
    ...(group !== undefined && { g: group }),
    ...(unique !== undefined && { u: unique, ...(windowMs !== undefined && { uw: windowMs }) }),
    ...(draw.labelled && { m: { tenant: 'a' } }),
  };
  const text = Object.keys(options).length > 0 ? toWire(JSON.stringify(options)) : '';
  const flags = (text === '' ? 0 : flag.settles) | (group === undefined ? 0 : flag.grouped);
  const job = makeJob(id, draw.payload, draw.priority, text, flags);
  return {
    ...{
      id,
      job,
      own: own !== undefined,
      unique: unique === undefined ? '' : toWire(unique),
      window: windowMs ?? '',
    },
    ...{ delay: draw.when === 0 ? world.delayMs() : draw.when === 1 ? 0 : '' },
    // A date of long ago is no reason to overtake others.
    ...{ runAt: draw.when === 2 ? 0 : draw.when === 3 ? Date.now() + world.delayMs() : '' },
    ...{ refs: [], policy: '', detail: '', print: '', title: '' },
  };
}

/** Somebody may choose an id that was generated before. */
function baledId(world: World, at: number): string | undefined {
  const { tombstones, jobs } = world.model;
  const cancelled = [...tombstones.keys()].filter((id) => id.includes('.'));
  return pick(cancelled.length > 0 ? cancelled : [...jobs.keys()].filter((id) => id.includes('.')), at);
}

define<{ by: number; items: ItemDraw[]; copies: number }>(
  'addEach',
  { by: number, items: fc.array(itemDraw, { minLength: 1, maxLength: 4 }), copies: fc.nat(1) },
  async (world, { by, items, copies }) => {
    if (world.model.jobs.size > maxJobs) return;
    const made = items.map((draw) => drawnItem(world, draw));
    await addCall(world, by, copies, ({ name }, lane, seq) => world.calls.addEach(name, lane, seq, made));
  },
);

define<{ by: number; item: ItemDraw; plain: boolean; arrived: boolean; late: boolean; copies: number }>(
  'repeatUnderItsName',
  {
    by: number,
    item: itemDraw,
    plain: fc.boolean(),
    arrived: fc.boolean(),
    late: fc.boolean(),
    copies: fc.nat(1),
  },
  async (world, { by, item, plain, arrived, late, copies }) => {
    if (world.model.jobs.size > maxJobs) return;
    const producer = pick(world.producers, by)!;
    const { name } = producer;
    // The lane of an unanswered call is never used again.
    const [lane] = producer.lanes.splice(by % producer.lanes.length, 1, producer.newLane());
    const seq = ++lane!.seq;
    const made = drawnItem(world, { ...item, own: 99 });
    const options = { ...optionsOf(made.job), w: rememberOwnMs };
    const owned: NewItem = {
      ...made,
      own: true,
      job: makeJob(
        made.id,
        item.payload,
        item.priority,
        toWire(JSON.stringify(options)),
        made.job.flags | flag.settles,
      ),
    };
    const bare = makeJob(made.id, item.payload, item.priority);
    const original = () =>
      plain
        ? world.calls.add(name, lane!.name, seq, [bare])
        : world.calls.addEach(name, lane!.name, seq, [owned]);
    if (arrived) await original();
    for (let i = 0; i <= copies; i++) await world.calls.addEach(name, `=${lane!.name}`, seq, [owned]);
    if (late) await original();
  },
);

define<{ by: number }>('forgetProducer', { by: number }, async (world, { by }) => {
  const { name } = pick(world.producers, by)!;
  world.echoes = world.echoes.filter(({ of }) => of !== `add by ${name}`);
  await world.calls.command('DEL', [world.calls.keys.producer + name], (model) =>
    model.producers.delete(name),
  );
});

define<{ messages: number[] }>(
  'push',
  { messages: fc.array(payload, { minLength: 1, maxLength: 3 }) },
  async (world, { messages }) => {
    if (world.model.inbox.length > maxMessages) return;
    const texts = messages.map((n) => (n % 3 === 0 ? `not JSON ${n} \xff` : JSON.stringify({ data: [n] })));
    await world.calls.push(texts);
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
      await addCall(world, by + takers, copies, ({ name }, lane, seq) =>
        world.calls.addEach(name, lane, seq, items, inbox),
      );
    }
  },
);

export function foreignItem(id: string, message: string): NewItem {
  const malformed = message.startsWith('not');
  const job: ModelJob = {
    ...makeJob(id, 1, 3),
    payload: message,
    flags: malformed ? flag.binary : flag.foreign,
  };
  const grave = malformed
    ? { detail: '{"malformed":true}', print: 'malformed', title: 'malformed' }
    : { detail: '', print: '', title: '' };
  return {
    id,
    job,
    own: false,
    delay: '',
    runAt: '',
    unique: '',
    window: '',
    refs: [],
    policy: '',
    ...grave,
  };
}
