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
const shorteningMs = 60_000;

let redis: RedisServer;
let link: RedisLink;
let total = 0;

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
        interruptAfterTimeLimit: shorteningMs,
        ...replay,
      });
      if (result.failed) fail(property, result);
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
    assert.ok(total >= Math.min(wanted, 100_000));
    assert.deepEqual(
      allKinds().filter((kind) => !(kind in everything)),
      [],
    );
  },
);

async function play(property: Property, commands: Command[]): Promise<void> {
  await link.call('FLUSHALL', []);
  const calls = new Calls(link, new Model(property.bounds ?? realBounds), property.variants);
  const world = new World(calls);
  try {
    for (const command of commands) await runCommand(world, command);
    await endEverything(world);
  } finally {
    total += calls.count;
  }
}

function fail(property: Property, result: fc.RunDetails<[Command[]]>): never {
  const { counterexample, counterexamplePath, seed, errorInstance, numShrinks } = result;
  const commands = counterexample?.[0].map((command) => JSON.stringify(command)).join('\n') ?? '';
  const how = `SLUICE_MODEL_PROPERTY='${property.name}' SLUICE_MODEL_SEED=${seed} SLUICE_MODEL_PATH=${counterexamplePath}`;
  const error =
    errorInstance instanceof Error ? (errorInstance.stack ?? errorInstance.message) : String(errorInstance);
  assert.fail(
    `${error}\n\nafter these commands (shortened ${numShrinks} times):\n${commands}\n\nrepeat it with\n${how}`,
  );
}
