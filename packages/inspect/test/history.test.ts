// History in Redis: one writer, bounded space, hours made of minutes, gaps filled from the books.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { RedisLink } from '@sluice/redis';
import { queueFigures, toFigures, toNamed } from '../src/figures.js';
import { History } from '../src/history.js';
import { inspectKeys } from '../src/keys.js';
import { hourRing, minuteRing, recordBytes } from '../src/ring.js';
import { Roller, redisSeries, seriesOf } from '../src/roller.js';
import { readSeries } from '../src/series.js';
import { eventually, useRedis } from './setup.js';

const bed = useRedis();
const minuteMs = 60_000;

function open(t: TestContext, prefix: string): History {
  const link = new RedisLink(bed.redis.url);
  t.after(() => link.close());
  return new History(link, inspectKeys(prefix));
}

test('of many processes one writes the history, and another takes over when its lease ends', async (t) => {
  const prefix = bed.prefix();
  const both = [open(t, prefix), open(t, prefix)];
  const leads = await Promise.all(both.map((each) => each.lead()));
  assert.equal(leads.filter(Boolean).length, 1);
  const [one, other] = (leads[0] ? both : both.toReversed()) as [(typeof both)[0], (typeof both)[0]];
  assert.equal(await one.lead(), true);
  await bed.redis.command('DEL', inspectKeys(prefix).writer);
  assert.equal(await other.lead(), true);
  assert.equal(await one.lead(), false);
});

test('a writer that lost its lease changes nothing', async (t) => {
  const prefix = bed.prefix();
  const [stale, present] = [open(t, prefix), open(t, prefix)];
  await stale.lead();
  await bed.redis.command('DEL', inspectKeys(prefix).writer);
  await present.lead();
  assert.equal(await present.write('s', queueFigures, 1_000, toFigures(queueFigures, { done: 1 })), true);
  assert.equal(await stale.write('s', queueFigures, 1_000, toFigures(queueFigures, { done: 2 })), false);
  const [record] = await present.readMinutes('s', 1_000, 1);
  assert.equal(toNamed(queueFigures, record!)['done'], 1);
});

test('minutes of many days take the space of one day, and hours are made of them', async (t) => {
  const prefix = bed.prefix();
  const history = open(t, prefix);
  await history.lead();
  const days = 3;
  const first = 20_000 * minuteRing.places;
  const last = first + days * minuteRing.places - 1;
  for (let minute = first; minute <= last; minute++) {
    await history.write(
      's',
      queueFigures,
      minute,
      toFigures(queueFigures, { done: 2, waiting: minute % 60 }),
    );
  }
  const keys = inspectKeys(prefix);
  assert.equal(await bed.redis.command('STRLEN', `${keys.minutes}s`), minuteRing.places * recordBytes);
  assert.ok(Number(await bed.redis.command('STRLEN', `${keys.hours}s`)) <= hourRing.places * recordBytes);
  for (const key of [keys.minutes, keys.hours]) {
    assert.ok(Number(await bed.redis.command('PTTL', `${key}s`)) > 0, 'a series that ends goes away');
  }
  const minutes = await history.readMinutes('s', last - minuteRing.places + 1, minuteRing.places);
  assert.ok(minutes.every((record) => record?.length));
  const [forgotten] = await history.readMinutes('s', last - minuteRing.places, 1);
  assert.equal(forgotten, null);
  const hours = await history.readHours('s', first / 60, days * 24);
  for (const hour of hours) {
    const { done, waiting } = toNamed(queueFigures, hour!);
    assert.deepEqual([done, waiting], [120, 59]);
  }
  assert.deepEqual(await history.rolledUntil(), new Map([['s', last]]));
});

test('days are made of the hours that are known, as far back as hours reach', async (t) => {
  const history = open(t, bed.prefix());
  await history.lead();
  const firstDay = 20_000;
  const write = (hour: number, done: number, waiting: number) =>
    history.write(seriesOf('mail'), queueFigures, hour * 60 + 59, toFigures(queueFigures, { done, waiting }));
  // Two hours of one day, nothing on the next, one hour of the day after it.
  await write(firstDay * 24, 5, 9);
  await write(firstDay * 24 + 23, 7, 3);
  await write(firstDay * 24 + 48, 11, 1);
  const dayMs = 86_400_000;
  const nowMs = (firstDay + 3) * dayMs + 1_000;
  const question = { queue: 'mail', step: 'day' } as const;
  const asked = await readSeries(history, { ...question, fromMs: firstDay * dayMs }, nowMs);
  assert.deepEqual(
    [asked.step, asked.stepMs, asked.complete, asked.points.map(({ atMs }) => atMs / dayMs)],
    ['day', dayMs, false, [firstDay, firstDay + 1, firstDay + 2]],
  );
  assert.deepEqual(
    asked.points.map(({ figures }) => figures && [figures['done'], figures['waiting']]),
    [[12, 9], null, [11, 1]],
  );
  const usual = await readSeries(history, question, nowMs);
  assert.deepEqual([usual.points.length, usual.points.at(-1)!.figures?.['done']], [90, 11]);
  assert.equal((await readSeries(history, { ...question, fromMs: 0 }, nowMs)).points.length, 90);
});

test('minutes in which nobody sampled are filled in from the books of the queue', async (t) => {
  const queue = bed.queue(t);
  const inspect = bed.inspect(t, [queue]);
  let ended = 0;
  queue.work(() => void ended++);
  await queue.addMany(Array.from({ length: 30 }, (_, n) => ({ data: n })));
  await eventually(() => ended === 30);
  await eventually(async () => (await queue.minutes(3)).reduce((sum, { done }) => sum + done, 0) === 30);

  // Two minutes from now nobody has written the present minute.
  const snapshot = await inspect.snapshot();
  const history = open(t, bed.prefix());
  await new Roller(history).roll({ ...snapshot, atMs: snapshot.atMs + 2 * minuteMs }, [queue]);
  const present = Math.floor(snapshot.atMs / minuteMs);
  const records = await history.readMinutes(seriesOf(queue.name), present - 5, 7);
  const figures = records.flatMap((record) => (record ? [toNamed(queueFigures, record)] : []));
  assert.equal(
    figures.reduce((sum, { done }) => sum + (done ?? 0), 0),
    30,
  );
  assert.ok(figures.slice(0, -1).every(({ waiting }) => waiting === undefined));
});

test('a minute is written once it is complete, by the one that leads, with its states', async (t) => {
  const queue = bed.queue(t);
  await queue.add('x', { delayMs: 3_600_000 });
  const inspect = bed.inspect(t, [queue]);
  const snapshot = await inspect.snapshot();
  const prefix = bed.prefix();
  const history = open(t, prefix);
  const [leader, follower] = [new Roller(history), new Roller(open(t, prefix))];
  await leader.roll(snapshot, [queue]);
  await follower.roll(snapshot, [queue]);
  assert.deepEqual([leader.leads, follower.leads], [true, false]);
  const last = Math.floor((snapshot.atMs - 2_000) / minuteMs) - 1;
  assert.deepEqual(
    await history.rolledUntil(),
    new Map([
      [seriesOf(queue.name), last],
      [redisSeries, last],
    ]),
  );
  const [record] = await history.readMinutes(seriesOf(queue.name), last, 1);
  assert.equal(toNamed(queueFigures, record!)['delayed'], 1);
});
