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
import { describe, test } from 'node:test';
import * as fc from 'fast-check';
import { RedisLink } from '@sluice/redis';
import { startRedis } from '@sluice/testbed';
import { scripts } from '../src/scripts.js';
import { Calls, alter } from './model/calls.js';
import type { Variants } from './model/calls.js';
import { allKinds, anyOf, runCommand } from './model/commands.js';
import type { Command } from './model/commands.js';
import { endEverything } from './model/ending.js';
import { Model } from './model/model.js';
import { realBounds } from './model/state.js';
import type { BaleFate, Bounds } from './model/state.js';
import { World } from './model/world.js';

const fewestCommands = 100_000;
const wanted = Number(process.env['SLUICE_MODEL_COMMANDS'] ?? fewestCommands);
/** A change is judged by the same commands as the one before it; whoever runs the tests by hand explores. */
const usualSeed = 2_028_234_771;
const chosenSeed = process.env['CI'] ? usualSeed : Math.floor(Math.random() * 2 ** 31);
const seed = Number(process.env['SLUICE_MODEL_SEED'] ?? chosenSeed);
const path = process.env['SLUICE_MODEL_PATH'];
const only = process.env['SLUICE_MODEL_PROPERTY'];
const commandsPerRun = 160;
const runsPerRound = 5;
const longestWord = 12;
/** Shortening a failure ends here, with the shortest found so far. */
const shorteningMs = 90_000;
/** One server works while the comparison of another's keys keeps this process busy. */
const atOnce = 2;

interface Property {
  name: string;
  /** Of all commands. */
  share: number;
  weights: Record<string, number>;
  bounds?: Bounds;
  variants?: Variants;
}

const sessions = {
  open: 3,
  renew: 3,
  drain: 1,
  close: 2,
  leaseEnds: 2,
  rescue: 3,
  outage: 1,
  graceEnds: 1,
  clockGoesBack: 1,
};
const faults = { echo: 6, flushScripts: 1, tokenAhead: 1 };
const plain = {
  add: 16,
  claim: 30,
  workQuickly: 5,
  wake: 4,
  finish: 20,
  cancel: 4,
  cancelBale: 1,
  read: 3,
  tally: 1,
  declare: 1,
  ...sessions,
  ...faults,
};
const producers = { addEach: 20, repeatUnderItsName: 3, forgetProducer: 1, push: 3, takeInbox: 3 };
const memories = { dueComes: 6, hasten: 3, uniqueEnds: 2, memoryEnds: 3, sweep: 3, nurseTires: 1 };
const special = { ...plain, ...producers, ...memories, note: 3 };
const limited = { ...special, rule: 8, windowMoves: 4, groupWindowMoves: 4, cancelGroup: 2 };
const letters = {
  die: 10,
  replay: 3,
  discard: 2,
  edit: 3,
  amend: 3,
  retain: 2,
  expire: 2,
  lettersAge: 1,
  readLetters: 3,
};
const chains = { block: 6, deliver: 8, chain: 4, schedule: 4, unschedule: 1, tick: 6 };
const chained = { ...special, ...letters, ...chains };
const everything = { ...limited, ...chained };

/** Bounds that a test can reach, and scripts that have them. */
const small: Bounds = {
  promotedPerCall: 3,
  claimBytes: 120,
  bytesCheckedEvery: 2,
  suspectsLookedAt: 2,
  triesKept: 1,
  worthTaking: 3,
};
const smallBytes: [string, string][] = [
  ['CLAIM_BYTES = 8 * 1024 * 1024', `CLAIM_BYTES = ${small.claimBytes}`],
  ['BYTES_CHECKED_EVERY = 64', `BYTES_CHECKED_EVERY = ${small.bytesCheckedEvery}`],
];
const smallLooks: [string, string][] = [
  ['PROMOTED_PER_CALL = 200', `PROMOTED_PER_CALL = ${small.promotedPerCall}`],
  ['SUSPECTS_LOOKED_AT = 20', `SUSPECTS_LOOKED_AT = ${small.suspectsLookedAt}`],
  ['WORTH_TAKING = 16', `WORTH_TAKING = ${small.worthTaking}`],
];
const smallTries: [string, string] = ['TRIES_KEPT = 20', `TRIES_KEPT = ${small.triesKept}`];
const variants: Variants = {
  claim: alter('claim', ...smallBytes, ...smallLooks),
  take: alter('take', ...smallBytes),
  settle: alter('settle', smallTries),
  retry: alter('retry', smallTries),
  rescue: alter('rescue', smallTries),
};

const properties: Property[] = [
  { name: 'plain jobs', share: 0.15, weights: plain },
  { name: 'own ids, unique keys, delays and groups', share: 0.2, weights: special },
  { name: 'limits', share: 0.2, weights: limited },
  { name: 'dead letters, chains and schedules', share: 0.2, weights: chained },
  { name: 'everything', share: 0.1, weights: everything },
  { name: 'plain jobs, with small bounds', share: 0.07, weights: plain, bounds: small, variants },
  { name: 'everything, with small bounds', share: 0.08, weights: everything, bounds: small, variants },
];

/** What each script can answer, and the flags of a claim. All of it has to occur. */
const answers: Partial<Record<keyof typeof scripts, string>> = {
  declare: 'OK MISMATCH',
  add: 'OK REPEAT ABANDONED',
  addEach: 'OK REPEAT ABANDONED ADDED DUPLICATE',
  intake: 'OK REPEAT STALE ADDED',
  open: 'OK USED',
  renew: 'OK EXPIRED LEASE_LOST',
  drain: 'asked draining drained',
  close: 'CLOSED BUSY LEASE_LOST',
  rescue: 'RESCUED GRACE NONE',
  claim: 'OK REPEAT STALE LEASE_LOST SPLIT 1 2 4 8 16 32 64 128 256',
  take: 'OK REPEAT STALE LEASE_LOST LOOK SPLIT 16 512',
  settle: 'OK LEASE_LOST SETTLED ALREADY',
  retry: 'OK LEASE_LOST DELAYED ALREADY',
  note: 'OK ALREADY LEASE_LOST',
  cancel: 'UNKNOWN ENDED waiting delayed blocked active dead',
  edit: 'EDITED UNKNOWN CHANGED',
  amend: 'REPLAYED UNKNOWN CHANGED TAKEN',
  hasten: 'HASTENED ELSEWHERE',
  depend: 'WAITING UNKNOWN done cancelled dead',
  unblock: 'RELEASED CANCELLED WAITING UNKNOWN',
  chainKeep: 'KEPT KNOWN',
  chainDrop: 'DROPPED UNKNOWN',
  schedule: 'SET CHANGED SAME',
  unschedule: 'REMOVED UNKNOWN',
  tick: 'FIRED LATE EARLY',
  ask: 'WAITING UNKNOWN done cancelled dead',
  look: 'waiting delayed blocked active done dead cancelled',
};

/**
 * Some only read, and have tests of their own (browse, retries and dead). Two answers need a history that chance seldom writes, and have
 * theirs too: a worker that has finished draining (drain), a letter whose unique key was taken meanwhile (operators).
 */
const testedElsewhere = [
  ...['browse', 'glance', 'crew', 'retries', 'mourn', 'trend'],
  ...['drain drained', 'amend TAKEN'],
];

/** What can happen to a bale. All of it has to happen. */
const fates: BaleFate[] = [
  ...(['whole', 'again', 'back', 'apart', 'cut', 'untied'] as const),
  ...(['ended', 'loosened', 'looseTaken', 'dropped', 'emptied', 'seen'] as const),
];

let total = 0;
/** How often each script answered what. */
const heard = new Map<string, number>();

describe('the scripts do what the model does', { concurrency: atOnce }, () => {
  for (const property of properties) {
    const skip = only !== undefined && only !== property.name;
    test(property.name, { skip }, async (t) => {
      t.diagnostic(`SLUICE_MODEL_SEED=${seed}`);
      const redis = await startRedis({ appendonly: false });
      const link = new RedisLink(redis.url);
      t.after(async () => {
        link.close();
        await redis.stop();
      });
      const player = new Player(property, link);
      const commands = fc.array(anyOf(property.weights), { maxLength: commandsPerRun, size: 'max' });
      const check = fc.asyncProperty(commands, (list) => player.play(list));
      for (let round = 0; player.commands < wanted * property.share; round++) {
        const replay = path === undefined ? {} : { path };
        const parameters = { seed: seed + round, numRuns: runsPerRound, endOnFailure: true, ...replay };
        const result = await fc.check(check, parameters);
        if (result.failed) await player.fail(result);
        if (path !== undefined) break;
      }
      t.diagnostic(`${player.commands} commands`);
      total += player.commands;
    });
  }
});

test(
  'every script was called and gave every answer it has',
  { skip: only !== undefined || wanted < fewestCommands },
  (t) => {
    t.diagnostic(`${total} commands in all`);
    assert.ok(total >= fewestCommands);
    const possible = Object.entries(answers).flatMap(([name, words]) =>
      words.split(' ').map((word) => `${name} ${word}`),
    );
    const all = [...Object.keys(scripts), ...possible, ...fates.map((fate) => `bale ${fate}`)];
    const rarest = all.toSorted((a, b) => (heard.get(a) ?? 0) - (heard.get(b) ?? 0)).slice(0, 12);
    t.diagnostic(
      `the rarest answers: ${rarest.map((answer) => `${answer} ${heard.get(answer) ?? 0}`).join(', ')}`,
    );
    const missing = all.filter((answer) => !heard.has(answer) && !testedElsewhere.includes(answer));
    assert.deepEqual(missing, []);
    assert.deepEqual(allKinds.toSorted(), Object.keys(everything).toSorted());
  },
);

class Player {
  readonly #property: Property;
  readonly #link: RedisLink;
  commands = 0;

  constructor(property: Property, link: RedisLink) {
    this.#property = property;
    this.#link = link;
  }

  async play(commands: Command[]): Promise<void> {
    const failure = await this.#firstFailure(commands);
    if (failure) throw failure.error;
  }

  async fail(result: fc.RunDetails<[Command[]]>): Promise<never> {
    const { commands, error } = await this.#shorten(result.counterexample![0]);
    const where = `SLUICE_MODEL_SEED=${result.seed} SLUICE_MODEL_PATH=${result.counterexamplePath}`;
    const how = `SLUICE_MODEL_PROPERTY='${this.#property.name}' ${where}`;
    const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
    const list = commands.map((command) => JSON.stringify(command)).join('\n');
    assert.fail(`${stack}\n\nafter these commands:\n${list}\n\nrepeat it with\n${how}`);
  }

  /** What went wrong, and with which command; the end, when everything has to end, counts as one more. */
  async #firstFailure(commands: Command[]): Promise<{ at: number; error: unknown } | undefined> {
    const { bounds = realBounds, variants } = this.#property;
    await this.#link.call('FLUSHALL', []);
    const model = new Model(bounds);
    model.onBale = (fate) => count(`bale ${fate}`);
    const calls = new Calls(this.#link, model, variants);
    calls.tell = remember;
    const world = new World(calls);
    let at = 0;
    try {
      for (; at < commands.length; at++) await runCommand(world, commands[at]!);
      await endEverything(world);
      return undefined;
    } catch (error) {
      return { at, error };
    } finally {
      this.commands += calls.count;
    }
  }

  /**
   * Leaves out ever smaller parts as long as it still fails. (fast-check's own way tries many more sequences, because it
   * cannot know that what comes after the failing command does not matter.)
   */
  async #shorten(commands: Command[]): Promise<{ commands: Command[]; error: unknown }> {
    const end = performance.now() + shorteningMs;
    let shortest = commands;
    let error: unknown = new Error('it did not fail a second time');
    const tryOut = async (candidate: Command[]): Promise<void> => {
      const failure = await this.#firstFailure(candidate);
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
}

function count(what: string): void {
  heard.set(what, (heard.get(what) ?? 0) + 1);
}

/** Counts a call, the words of its reply, and the flags of a claim. */
function remember(name: keyof typeof scripts, reply: unknown): void {
  count(name);
  for (const item of new Set([reply].flat(3))) {
    if (typeof item === 'string' && item.length <= longestWord) count(`${name} ${item}`);
  }
  if ((name !== 'claim' && name !== 'take') || !Array.isArray(reply)) return;
  for (let bit = 1; bit <= 512; bit *= 2) if (Number(reply[5]) & bit) count(`${name} ${bit}`);
}
