// Commands about dead letters.
import * as fc from 'fast-check';
import { bytes } from './calls.js';
import { CommandSet, few, number, payload, pick, sometimes } from './define.js';
import { Moment } from './foretold.js';
import { packedOf } from './state.js';
import { past } from './time.js';
import { prints } from './workers.js';
import { makePayload } from './world.js';
import type { World } from './world.js';

export const aboutLetters = new CommandSet();
const { define } = aboutLetters;

const oldMs = 10_000_000;

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
    await world.send(kind, () => world.calls[kind](name, ids), copies);
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

define<{ letter: number; payload: number; conflict: boolean; operation: number; copies: number }>(
  'amend',
  { letter: number, payload, conflict: sometimes(4), operation: number, copies: fc.nat(1) },
  async (world, { letter, payload, conflict, operation, copies }) => {
    const { dead, jobs } = world.model;
    const id = pick([...(dead.size > 0 ? dead : jobs).keys()], letter);
    const job = id === undefined ? undefined : world.model.jobs.get(id);
    if (!job) return;
    const seen = conflict ? `${packedOf(job)}!` : packedOf(job);
    const replacement = { ...job, payload: makePayload(payload).payload };
    const name = `amend:${operation}`;
    await world.send('amend', () => world.calls.amend(name, job.id, seen, replacement), copies);
  },
);

define<{ maxCount: number; old: boolean }>(
  'retain',
  { maxCount: fc.nat(4), old: fc.boolean() },
  async (world, { maxCount, old }) => {
    const retention = maxCount === 0 ? undefined : old ? { maxAgeMs: oldMs } : { maxCount };
    const { cfg } = world.calls.keys;
    const args = retention
      ? ['HSET', cfg, 'retention', JSON.stringify(retention)]
      : ['HDEL', cfg, 'retention'];
    await world.calls.command(args[0]!, args.slice(1), (model) => (model.retention = retention));
  },
);

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

define<{ limit: number }>('expire', { limit: fc.integer({ min: 1, max: 2 }) }, (world, { limit }) =>
  world.calls.expire(limit),
);

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
