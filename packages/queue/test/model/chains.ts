// Commands about jobs that wait for others, and about jobs that come back.
import * as fc from 'fast-check';
import { bytes, word } from './calls.js';
import { anyId, CommandSet, number, sometimes } from './define.js';
import { toWire } from './foretold.js';
import { addCall, drawnItem, itemDraw, maxJobs } from './producers.js';
import type { ItemDraw } from './producers.js';
import { flag, optionsOf } from './state.js';
import { letChainCome, letTickCome, scheduleNames } from './time.js';
import { makeJob } from './world.js';
import type { World } from './world.js';

export const aboutChains = new CommandSet();
const { define } = aboutChains;

const pauseMs = 10_000_000;
const rememberMs = 50_000_000;
const rememberTickMs = 3_600_000;

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
  {
    by: number,
    item: itemDraw,
    on: fc.array(number, { minLength: 1, maxLength: 3 }),
    policy: fc.nat(2),
    steps: fc.nat(5),
  },
  async (world, { by, item, on, policy, steps }) => {
    if (world.model.jobs.size > maxJobs) return;
    const made = drawnItem(world, { ...item, when: 7, unique: 99 });
    const dependencies = [...new Set(on.map((at) => anyId(world, at)))].filter((id) => id !== made.id);
    const refs: string[] = [];
    const ended: { id: string; outcome: string }[] = [];
    for (const id of dependencies) {
      const outcome = word(
        await world.send('depend', () => world.calls.depend(id, refOf(made.id), rememberMs)),
      );
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
define<{ notice: number; keep: boolean }>(
  'deliver',
  { notice: number, keep: sometimes(4) },
  async (world, { notice, keep }) => {
    const { chained } = world.model;
    if (chained.length === 0) return;
    const at = notice % chained.length;
    const { target, id, outcome } = chained[at]!;
    await world.send('deliver', () => world.calls.unblock(idOf(target), refOf(id), outcome));
    if (keep) return;
    const text = world.calls.snapshot.get('chained')!.items[at]!;
    const first = world.calls.snapshot.get('chained')!.items.indexOf(text);
    await world.calls.command('LREM', [world.calls.keys.chained, 1, bytes(text)], (model) =>
      model.chained.splice(first, 1),
    );
  },
);

/** A chain is being made; its maker may die, and then a sweep takes it. */
define<{ chain: number; step: number; comes: boolean }>(
  'chain',
  { chain: fc.nat(2), step: fc.nat(3), comes: fc.boolean() },
  async (world, { chain, step, comes }) => {
    const name = `chain${chain}`;
    // Different for each, so that it is known which one is due first.
    const nextMs = pauseMs + chain * 1e6;
    if (comes) await letChainCome(world, name);
    if (step === 0) await world.calls.chainTake(1 + chain, nextMs);
    else if (step === 1) await world.calls.chainDrop(name);
    else await world.calls.chainKeep(name, `{"step":${step}}`, nextMs);
  },
);

define<{ name: number; when: number; spec: number }>(
  'schedule',
  { name: fc.nat(1), when: fc.nat(1), spec: fc.nat(2) },
  async (world, { name, when, spec }) => {
    await setSchedule(world, scheduleNames[name]!, when, spec);
  },
);

async function setSchedule(world: World, name: string, when: number, spec: number): Promise<void> {
  const next = Date.now() + world.delayMs();
  const text = toWire(JSON.stringify({ when: `every ${when}`, payload: `pä${spec}` }));
  await world.send('schedule', () => world.calls.schedule(name, text, next));
}

define<{ name: number }>('unschedule', { name: fc.nat(1) }, (world, { name }) =>
  world.calls.unschedule(scheduleNames[name]!),
);

interface TickDraw {
  name: number;
  comes: boolean;
  id: number;
  jobs: number;
  item: ItemDraw;
  last: boolean;
  off: boolean;
  copies: number;
}

/** Several schedulers see that a schedule is due. */
define<TickDraw>(
  'tick',
  {
    name: fc.nat(1),
    comes: sometimes(4).map((not) => !not),
    id: fc.nat(2),
    jobs: fc.nat(2),
    item: itemDraw,
    last: sometimes(4),
    off: sometimes(5),
    copies: fc.nat(2),
  },
  async (world, { name, comes, id, jobs, item, last, off, copies }) => {
    if (world.model.jobs.size > maxJobs) return;
    const schedule = scheduleNames[name]!;
    if (comes) {
      if (!world.model.ticks.has(schedule)) await setSchedule(world, schedule, 0, 0);
      await letTickCome(world, schedule);
    }
    await world.calls.due(2);
    const dueMs = (world.model.ticks.get(schedule) ?? 7) + (off ? 1 : 0);
    const made = drawnItem(world, { ...item, own: 99 });
    const options = { ...optionsOf(made.job), w: rememberTickMs };
    // The same ids come again, as when a schedule is removed and set anew.
    const jobAt = (i: number) =>
      makeJob(
        `${schedule}@${id + i}`,
        item.payload,
        item.priority,
        toWire(JSON.stringify(options)),
        made.job.flags | flag.settles,
      );
    const list = Array.from({ length: jobs }, (_, i) => jobAt(i));
    const next = last ? '' : Date.now() + world.delayMs();
    await world.send('tick', () => world.calls.tick(schedule, dueMs, next, list), copies);
  },
);
