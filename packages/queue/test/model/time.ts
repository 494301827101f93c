// Time passes. Redis' clock cannot be set, so it passes by hand: whatever waits for a time waits for one that no test lives to
// see, and a command moves that time into the past.
import * as fc from 'fast-check';
import { bytes, leaseMs } from './calls.js';
import { CommandSet, few, number, pick } from './define.js';
import { Moment } from './foretold.js';
import type { World } from './world.js';

export const ofTime = new CommandSet();
const { define } = ofTime;

export const scheduleNames = ['nightly', 'hourly'];
/** Longer than the window of every limit. */
const windowMs = 10_000_000;

/** A moment of the past, each another one. */
export function past(world: World): number {
  return Math.floor(Date.now() - 1e8 - world.delayMs() / 100);
}

export async function setScore(
  world: World,
  key: string,
  member: string,
  score: number,
  mean: () => void,
): Promise<void> {
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
  await setScore(world, world.calls.keys.delayed, chosen[0], score, () =>
    delayed.set(chosen[0], new Moment(score)),
  );
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
  await world.calls.command(
    'HSET',
    [keys.cfg, 'renewed', renewed],
    (model) => (model.renewed = new Moment(renewed)),
  );
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
  await world.calls.command(
    'HSET',
    [keys.cfg, 'renewed', renewed],
    (model) => (model.renewed = new Moment(renewed)),
  );
  for (const session of world.model.liveSessions) {
    const score = session.at.ms + 3 * leaseMs;
    await setScore(world, keys.sessions, session.name, score, () => (session.at = new Moment(score)));
  }
});

define<{ key: number }>('uniqueEnds', { key: number }, async (world, { key }) => {
  const chosen = pick(
    [...world.model.uniques].filter(([, { ends }]) => ends),
    key,
  );
  if (!chosen) return;
  await world.calls.command('DEL', [bytes(world.calls.keys.unique + chosen[0])], (model) =>
    model.uniques.delete(chosen[0]),
  );
});

define<{ job: number }>('memoryEnds', { job: number }, async (world, { job }) => {
  const chosen = pick([...world.model.ended], job);
  if (chosen) await endMemory(world, chosen[0]);
});

/** The logs of a job that is remembered end by themselves, at the same time. */
export async function endMemory(world: World, id: string): Promise<void> {
  const { ended, logs } = world.model;
  const score = past(world);
  if (logs.get(id)?.ends)
    await world.calls.command('DEL', [bytes(world.calls.keys.logs + id)], () => logs.delete(id));
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
    const at = before[i]! > Date.now() - windowMs ? before[i]! - 2 * windowMs : before[i]!;
    await calls.command('LSET', [calls.keys.rate, i, at], () => (model.rate[i] = at));
  }
});

define<{ group: number; count: number }>(
  'groupWindowMoves',
  { group: number, count: few },
  async (world, { group, count }) => {
    const { model, calls } = world;
    const chosen = pick([...model.groupRate], group);
    if (!chosen) return;
    const [name, times] = chosen;
    for (const worker of world.workers.values()) worker.hungry = true;
    const key = bytes(calls.keys.groupRate + name);
    const old = Math.min(count, times.length);
    if (old === times.length) await calls.command('DEL', [key], () => model.groupRate.delete(name));
    for (let i = 0; i < old && old < times.length; i++) {
      const at = times[i]! > Date.now() - windowMs ? times[i]! - 2 * windowMs : times[i]!;
      await calls.command('LSET', [key, i, at], () => (times[i] = at));
    }
    const parked = model.parked.get(name);
    if (parked === undefined || parked < Date.now()) return;
    const score = past(world);
    await setScore(world, calls.keys.parked, name, score, () => model.parked.set(name, score));
  },
);

define<object>('nurseTires', {}, async (world) => {
  const { nurse } = world.model;
  if (!nurse) return;
  const untilMs = Date.now() - 1000;
  const text = `${nurse.session} ${untilMs}`;
  await world.calls.command('HSET', [world.calls.keys.cfg, 'nurse', text], () => (nurse.until = untilMs));
});

export async function letTickCome(world: World, schedule: string): Promise<void> {
  if (!world.model.ticks.has(schedule)) return;
  const score = past(world);
  await setScore(world, world.calls.keys.ticks, schedule, score, () =>
    world.model.ticks.set(schedule, score),
  );
}

export async function letChainCome(world: World, name: string): Promise<void> {
  const chain = world.model.chains.get(name);
  if (!chain) return;
  const score = past(world);
  await setScore(world, world.calls.keys.chainsDue, name, score, () => (chain.due = new Moment(score)));
}
