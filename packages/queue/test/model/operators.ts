// Commands of operators: cancelling, rules, questions.
import * as fc from 'fast-check';
import { CommandSet, anyId, few, number, pick } from './define.js';
import { addCall } from './producers.js';
import { makeItem, makeJob } from './world.js';
import type { World } from './world.js';

export const ofOperators = new CommandSet();
const { define } = ofOperators;

const keepMs = 5_000_000;
const windowMs = 10_000_000;

define<{ job: number; keep: boolean }>(
  'cancel',
  { job: number, keep: fc.boolean() },
  async (world, { job, keep }) => {
    const id = anyId(world, job);
    const memoryMs = keep ? keepMs : 0;
    await world.send('cancel', () => world.calls.cancel(id, memoryMs));
  },
);

define<{ job: number; waits: boolean }>(
  'hasten',
  { job: number, waits: fc.boolean() },
  async (world, { job, waits }) => {
    const delayed = pick([...world.model.delayed.keys()], job);
    const id = (waits ? delayed : undefined) ?? anyId(world, job);
    await world.send('hasten', () => world.calls.hasten(id));
  },
);

/** Everything that waits in one group. */
define<{ group: number }>('cancelGroup', { group: number }, async (world, { group }) => {
  const members = pick([...world.model.grouped.values()], group);
  for (const id of [...(members?.keys() ?? [])]) await world.calls.cancel(id, 0);
});

/** All the jobs of a bale, one by one; perhaps somebody then adds them once more, under the ids that they had. */
define<{ bale: number; again: boolean }>(
  'cancelBale',
  { bale: number, again: fc.boolean() },
  async (world, { bale, again }) => {
    const ids = [...(pick([...world.model.bales.values()], bale)?.ids ?? [])];
    for (const id of ids) await world.calls.cancel(id, 0);
    if (!again || ids.length === 0) return;
    const items = ids.map((id) => ({ ...makeItem(makeJob(id, bale, 3)), own: true }));
    await addCall(world, bale, 0, ({ name }, lane, seq) => world.calls.addEach(name, lane, seq, items));
  },
);

const ruleChanges: Record<string, unknown>[] = [
  { paused: true },
  { paused: null },
  { maxActive: 1 },
  { maxActive: 4 },
  { maxActive: null },
  { rateMax: 3, ratePerMs: windowMs },
  { rateMax: 6, ratePerMs: windowMs },
  { rateMax: null, ratePerMs: null },
  { keyMaxActive: 1 },
  { keyMaxActive: 2 },
  { keyMaxActive: null },
  { keyRateMax: 2, keyRatePerMs: windowMs },
  { keyRateMax: 4, keyRatePerMs: windowMs },
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

/** Questions are asked about what is rare as often as about what is common. */
define<{ about: number; job: number; what: number }>(
  'read',
  { about: fc.nat(9), job: number, what: fc.nat(7) },
  async (world, { about, job, what }) => {
    if (what === 0) return world.calls.counts();
    if (what === 1) return world.calls.peek(1 + (job % 4));
    const { dead, ended, suspects, delayed, blocked, tombstones } = world.model;
    const held = [...world.model.groups].filter(([, state]) => state !== 'ready');
    const inShutGroups = held.flatMap(([name]) => [...(world.model.grouped.get(name)?.keys() ?? [])]);
    const waiting = [...delayed.keys(), ...blocked.keys(), ...inShutGroups];
    const inBales = [...world.model.bales.values()].flatMap(({ ids }) => ids);
    const heldInBales = inBales.filter((id) => world.model.holderOf(id));
    const places = [
      ...[[...dead.keys()], [...ended.keys()], suspects, waiting, [...tombstones.keys()]],
      ...[inBales, heldInBales, heldInBales],
    ];
    const id = pick(places[about] ?? [], job) ?? anyId(world, job);
    return what < 4 ? world.calls.ask(id) : world.calls.look(id);
  },
);

define<{ field: number; by: number }>('tally', { field: number, by: few }, async (world, { field, by }) => {
  await world.calls.tally([
    [`w${field % 3}`, by],
    [`r${field % 2}`, 1],
  ]);
});

define<{ partitions: number }>('declare', { partitions: few }, (world, { partitions }) =>
  world.calls.declare(partitions),
);

define<{ limit: number }>('sweep', { limit: few }, (world, { limit }) => world.calls.sweep(limit));
