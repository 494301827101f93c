// The end of a test: everything that is still there comes to its end, and then nothing may be left. First without any help:
// workers that sleep must be woken by tokens alone until nothing can be claimed.
import assert from 'node:assert/strict';
import { bytes } from './calls.js';
import { idOf, refOf } from './chains.js';
import { dropRules } from './operators.js';
import { foreignItem } from './producers.js';
import { endMemory, past, setScore } from './time.js';
import { Moment } from './foretold.js';
import type { Worker, World } from './world.js';

const manyRounds = 400;
/** What a queue without jobs and workers may keep. */
const registered = /^(cfg|wake|replays|events|producer:.*|stats:.*)$/s;

export async function endEverything(world: World): Promise<void> {
  await answerAll(world);
  await drainByTokens(world);
  await dropRules(world);
  await endStrangers(world);
  for (let round = 0; isBusy(world); round++) {
    assert.ok(round < manyRounds, `the jobs ${[...world.model.jobs.keys()].join()} do not end`);
    await helpOn(world);
    const worker = [...world.workers.values()][0] ?? (await world.openWorker());
    for (const each of [...world.workers.values()]) await finishHeld(world, each);
    await work(world, worker);
  }
  await endMemories(world);
  for (const worker of [...world.workers.values()]) {
    await work(world, worker);
    await world.calls.close(worker.name);
  }
  const left = [...world.calls.snapshot.keys()].filter((key) => !registered.test(key));
  assert.deepEqual(left, [], 'nothing is left when everything has ended');
}

function isBusy({ model }: World): boolean {
  const { jobs, tombstones, inbox, groups, chained } = model;
  return jobs.size + tombstones.size + inbox.length + groups.size + chained.length > 0;
}

/** Unanswered calls are repeated until they are answered. */
async function answerAll(world: World): Promise<void> {
  for (const worker of [...world.workers.values()]) {
    for (const lane of [0, 1]) {
      if (world.workers.has(worker.name) && worker.lanes[lane]!.pending)
        await world.claim(worker, lane, 0, -1, [], 'heard');
    }
  }
}

async function drainByTokens(world: World): Promise<void> {
  const { model, calls } = world;
  for (let round = 0; ; round++) {
    assert.ok(round < manyRounds, 'workers that wake each other come to rest');
    const workers = [...world.workers.values()];
    const awake = workers.find(({ hungry, held, acks }) => hungry || held.size + acks.length > 0);
    if (awake) {
      await finishHeld(world, awake);
      await work(world, awake);
      continue;
    }
    if (workers.length === 0) return;
    if ((await calls.command('LPOP', [calls.keys.wake], () => (model.wake = false))) === null) break;
    await work(world, workers[round % workers.length]!);
  }
  const { paused, rateMax, maxActive } = model.rules;
  const nobodyMay =
    paused || rateMax !== undefined || (maxActive !== undefined && model.activeCount >= maxActive);
  if (nobodyMay || model.suspects.length > 0) return;
  const forgotten = [
    ...model.waits.flat(),
    ...[...model.fresh, ...model.ring].filter((name) => model.grouped.has(name)),
  ];
  assert.deepEqual(forgotten, [], 'nothing can be claimed, or somebody is told');
}

/** A worker ends what it holds; whatever needs no settlement is acknowledged with its next call. */
async function finishHeld(world: World, worker: Worker): Promise<void> {
  for (const [id, { token, plain }] of [...worker.held]) {
    world.forget(worker, id);
    if (plain) {
      worker.acks.push({ id, token });
      continue;
    }
    const rest = { keepMs: 0, result: '', tried: '', detail: '', print: '', title: '' };
    const reply = (await world.calls.settle(worker.name, [
      { id, token, outcome: 'done', ...rest },
    ])) as string[];
    if (reply[0] === 'LEASE_LOST') world.workers.delete(worker.name);
  }
}

async function work(world: World, worker: Worker): Promise<void> {
  if (world.workers.has(worker.name)) await world.claim(worker, 0, 5, -1, worker.acks.splice(0), 'heard');
}

/** Sessions without a worker, and those whose worker does not know yet that they are being rescued. */
async function endStrangers(world: World): Promise<void> {
  const { model, calls } = world;
  calls.ledger.outage(0);
  const renewed = Date.now();
  const set = [calls.keys.cfg, 'renewed', renewed, 'graceUntil', 1];
  await calls.command('HSET', set, () => {
    model.renewed = new Moment(renewed);
    model.graceUntil = new Moment(1);
  });
  for (const session of model.liveSessions) {
    if (world.workers.has(session.name)) continue;
    const score = past(world);
    await setScore(world, calls.keys.sessions, session.name, score, () => (session.at = new Moment(score)));
  }
  while (((await calls.rescue(3)) as string[])[0] === 'RESCUED');
  for (const name of [...world.workers.keys()]) if (!model.live(name)) world.workers.delete(name);
}

/** What waits for a time or for somebody else waits no longer. */
async function helpOn(world: World): Promise<void> {
  const { model, calls } = world;
  for (const [id, at] of model.delayed) {
    if (at.ms < Date.now()) continue;
    const score = past(world);
    await setScore(world, calls.keys.delayed, id, score, () => model.delayed.set(id, new Moment(score)));
  }
  while (model.chained.length > 0) {
    const { target, id, outcome } = model.chained[0]!;
    await calls.unblock(idOf(target), refOf(id), outcome);
    await calls.command('LPOP', [calls.keys.chained], () => model.chained.shift());
  }
  for (const [id, { refs }] of [...model.blocked]) {
    for (const ref of [...refs]) await calls.unblock(id, ref, 'done');
  }
  if (model.inbox.length > 0) {
    const [taken, ...messages] = (await calls.peek(100)) as [string, ...string[]];
    const producer = world.producers[0]!;
    const lane = producer.lanes[0]!;
    const items = messages.map((message) => foreignItem(world.name('m'), message));
    await calls.addEach(producer.name, lane.name, ++lane.seq, items, {
      taken: Number(taken),
      count: messages.length,
    });
  }
  if (model.dead.size > 0) await calls.discard('at the end', [...model.dead.keys()]);
  // What died after the operation began is not its business, so each round has its own.
  await calls.command('HDEL', [calls.keys.replays, 'at the end'], () =>
    model.operations.delete('at the end'),
  );
}

async function endMemories(world: World): Promise<void> {
  const { model, calls } = world;
  for (const id of [...model.ended.keys()]) await endMemory(world, id);
  while (Number(await calls.sweep(50)) > 0);
  for (const [key, { ends }] of [...model.uniques]) {
    assert.ok(ends, `the key ${key} is held by nobody and for ever`);
    await calls.command('DEL', [bytes(calls.keys.unique + key)], () => model.uniques.delete(key));
  }
  for (const chain of [...model.chains.keys()]) await calls.chainDrop(chain);
  for (const name of [...model.schedules.keys()]) await calls.unschedule(name);
  for (const name of [...model.groupRate.keys()]) {
    await calls.command('DEL', [bytes(calls.keys.groupRate + name)], () => model.groupRate.delete(name));
  }
  await calls.command('DEL', [calls.keys.rate], () => (model.rate = []));
}
