// Every script of the queue against a model in memory, on a real Redis: random commands of several sessions, producers and
// operators, with lost replies, late copies of calls, forgotten scripts, ended leases and outages among them. After each call
// the reply, every key and what must hold anyway are compared (model/calls.ts).
//
// The seed is new each time and is printed. What a failure prints repeats it, shortened:
//
//   SLUICE_MODEL_PROPERTY=… SLUICE_MODEL_SEED=… SLUICE_MODEL_PATH=… node --test packages/queue/dist/test/model.test.js
//
// SLUICE_MODEL_COMMANDS sets how many commands there are in all.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { RedisLink } from '@sluice/redis';
import { startRedis } from '@sluice/testbed';
import type { RedisServer } from '@sluice/testbed';
import { Calls, alter } from './model/calls.js';
import type { Variants } from './model/calls.js';
import { allKinds, anyOf, runCommand } from './model/commands.js';
import type { Command } from './model/commands.js';
import { endEverything } from './model/ending.js';
import { Model, realBounds } from './model/model.js';
import type { Bounds } from './model/model.js';
import { World } from './model/world.js';

const wanted = Number(process.env['SLUICE_MODEL_COMMANDS'] ?? 100_000);
const seed = Number(process.env['SLUICE_MODEL_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const path = process.env['SLUICE_MODEL_PATH'];
const only = process.env['SLUICE_MODEL_PROPERTY'];
const commandsPerRun = 160;
const runsPerRound = 20;
/** Shortening a failure ends here, with the shortest found so far. */
const shorteningMs = 90_000;

let redis: RedisServer;
let link: RedisLink;
let total = 0;
const answers = new Map<string, number>();

before(async () => {
  redis = await startRedis({ appendonly: false });
  link = new RedisLink(redis.url);
});

after(async () => {
  link?.close();
  await redis?.stop();
});

interface Property {
  name: string;
  /** Of all commands. */
  share: number;
  weights: Record<string, number>;
  bounds?: Bounds;
  variants?: Variants;
}

const plain = {
  ...{
    add: 12,
    claim: 30,
    wake: 4,
    finish: 20,
    open: 3,
    renew: 3,
    close: 2,
    leaseEnds: 2,
    rescue: 3,
    outage: 1,
    graceEnds: 1,
  },
  ...{ clockGoesBack: 1, echo: 6, flushScripts: 1, tokenAhead: 1, cancel: 4, read: 3, tally: 1, declare: 1 },
};

const special = {
  ...plain,
  ...{
    addEach: 16,
    repeatUnderItsName: 3,
    forgetProducer: 1,
    push: 3,
    takeInbox: 3,
    note: 3,
    dueComes: 6,
    uniqueEnds: 2,
  },
  ...{ memoryEnds: 3, sweep: 3, nurseTires: 1 },
};

const limited = { ...special, rule: 8, windowMoves: 4, groupWindowMoves: 4 };

const chained = {
  ...special,
  ...{
    replay: 3,
    discard: 2,
    edit: 2,
    retain: 2,
    expire: 2,
    readLetters: 3,
    block: 5,
    deliver: 8,
    chain: 3,
    chainComes: 1,
  },
  ...{ schedule: 3, unschedule: 1, tick: 5, tickComes: 3 },
};

const everything = { ...limited, ...chained };

const small: Bounds = { promotedPerCall: 3, claimBytes: 120, bytesCheckedEvery: 2 };
const smallVariants = (): Variants => ({
  claim: alter(
    'claim',
    ['PROMOTED_PER_CALL = 200', `PROMOTED_PER_CALL = ${small.promotedPerCall}`],
    ['CLAIM_BYTES = 8 * 1024 * 1024', `CLAIM_BYTES = ${small.claimBytes}`],
    ['BYTES_CHECKED_EVERY = 64', `BYTES_CHECKED_EVERY = ${small.bytesCheckedEvery}`],
  ),
  take: alter(
    'take',
    ['CLAIM_BYTES = 8 * 1024 * 1024', `CLAIM_BYTES = ${small.claimBytes}`],
    ['BYTES_CHECKED_EVERY = 64', `BYTES_CHECKED_EVERY = ${small.bytesCheckedEvery}`],
  ),
});

const properties: Property[] = [
  { name: 'plain jobs', share: 0.2, weights: plain },
  { name: 'own ids, unique keys, delays and groups', share: 0.2, weights: special },
  { name: 'limits', share: 0.2, weights: limited },
  { name: 'dead letters, chains and schedules', share: 0.2, weights: chained },
  { name: 'everything', share: 0.1, weights: everything },
  {
    name: 'everything, with small bounds',
    share: 0.1,
    weights: everything,
    bounds: small,
    variants: smallVariants(),
  },
];

for (const property of properties) {
  const skip = only !== undefined && only !== property.name;
  test(`the scripts do what the model does: ${property.name}`, { skip }, async (t) => {
    t.diagnostic(`SLUICE_MODEL_SEED=${seed}`);
    const before = total;
    const arbitrary = fc.array(anyOf(property.weights), { maxLength: commandsPerRun, size: 'max' });
    const check = fc.asyncProperty(arbitrary, (commands) => play(property, commands));
    for (let round = 0; total - before < wanted * property.share; round++) {
      const replay = path === undefined ? {} : { path };
      const result = await fc.check(check, {
        seed: seed + round,
        numRuns: runsPerRound,
        endOnFailure: true,
        ...replay,
      });
      if (result.failed) await fail(property, result);
      if (path !== undefined) return;
    }
    t.diagnostic(`${total - before} commands`);
  });
}

test(
  'at least 100,000 commands were compared, and every kind of command',
  { skip: only !== undefined },
  (t) => {
    t.diagnostic(`${total} commands in all`);
  t.diagnostic([...answers].sort().map(([a, n]) => `${a} ${n}`).join(', '));
    assert.ok(total >= Math.min(wanted, 100_000));
    assert.deepEqual(
      allKinds().filter((kind) => !(kind in everything)),
      [],
    );
  },
);

async function play(property: Property, commands: Command[]): Promise<void> {
  const failure = await firstFailure(property, commands);
  if (failure) throw failure.error;
}

/** What went wrong, and with which command; the end, when everything has to end, counts as one more. */
async function firstFailure(
  property: Property,
  commands: Command[],
): Promise<{ at: number; error: unknown } | undefined> {
  await link.call('FLUSHALL', []);
  const calls = new Calls(link, new Model(property.bounds ?? realBounds), property.variants);
  calls.tell = (name, reply) => {
    const words = Array.isArray(reply) && name !== 'letters' ? reply.filter((item) => typeof item === 'string') : [reply];
    for (const item of words.slice(0, 3)) { const answer = `${name} ${String(item).slice(0, 12)}`; if (/ [A-Za-z]+$/.test(answer)) answers.set(answer, (answers.get(answer) ?? 0) + 1); }
  };
  const world = new World(calls);
  let at = 0;
  try {
    for (; at < commands.length; at++) await runCommand(world, commands[at]!);
    await endEverything(world);
    return undefined;
  } catch (error) {
    return { at, error };
  } finally {
    total += calls.count;
  }
}

/**
 * Leaves out ever smaller parts as long as it still fails. (fast-check's own way tries many more sequences, because it
 * cannot know that what comes after the failing command does not matter.)
 */
async function shorten(
  property: Property,
  commands: Command[],
): Promise<{ commands: Command[]; error: unknown }> {
  const end = performance.now() + shorteningMs;
  let shortest = commands;
  let error: unknown = new Error('it did not fail a second time');
  const tryOut = async (candidate: Command[]): Promise<void> => {
    const failure = await firstFailure(property, candidate);
    if (!failure) return;
    shortest = candidate.slice(0, failure.at + 1);
    error = failure.error;
  };
  await tryOut(commands);
  for (let size = shortest.length >> 1; size >= 1; size >>= 1) {
    for (let from = shortest.length - size; from > -size && performance.now() < end; from -= size) {
      const start = Math.max(from, 0);
      await tryOut([...shortest.slice(0, start), ...shortest.slice(start + size)]);
    }
  }
  return { commands: shortest, error };
}

async function fail(property: Property, result: fc.RunDetails<[Command[]]>): Promise<never> {
  const { commands, error } = await shorten(property, result.counterexample![0]);
  const where = `SLUICE_MODEL_SEED=${result.seed} SLUICE_MODEL_PATH=${result.counterexamplePath}`;
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  const list = commands.map((command) => JSON.stringify(command)).join('\n');
  assert.fail(
    `${stack}\n\nafter these commands:\n${list}\n\nrepeat it with\nSLUICE_MODEL_PROPERTY='${property.name}' ${where}`,
  );
}
