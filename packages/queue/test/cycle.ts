// Everything that a queue does, once: added, worked on, failed, buried, edited, replayed, scheduled, chained, limited, cancelled,
// asked about. For tests that run it in a place where something may be forbidden or encrypted.
import assert from 'node:assert/strict';
import { waitUntil } from '@sluice/testbed';
import { GiveUp, createChain, readEvents, readRules } from '../src/index.js';
import type { Queue } from '../src/index.js';
import { Gathering } from './setup.js';

export interface Parts {
  /** Adds, asks, cancels, schedules. */
  producer: Queue<string, string>;
  worker: Queue<string, string>;
  /** Limits, dead letters, figures. */
  operator: Queue<string, string>;
}

export async function runCycle({ producer, worker, operator }: Parts): Promise<void> {
  const seen = new Gathering<string>();
  let broken = true;
  const working = worker.work(
    async (job) => {
      await job.progress({ half: true });
      await job.log(`working on ${job.data}`);
      if (job.data === 'retried' && job.attempt === 1) throw new Error('once');
      if (job.data === 'dies' && broken) throw new GiveUp('no way');
      if (job.data === 'long') await new Promise((resolve) => job.signal.addEventListener('abort', resolve));
      seen.push(job.data);
      return `${job.data} done`;
    },
    { concurrency: 5 },
  );
  await working.start();

  // Added in every way.
  const kept = { keepResultMs: 60_000 };
  const one = await producer.add('one', kept);
  assert.equal(await producer.result(one.id), 'one done');
  await producer.addMany([{ data: 'many' }, { data: 'grouped', group: 'g' }, { data: 'late', delayMs: 50 }]);
  assert.equal((await producer.add('own', { id: 'own', ...kept })).duplicate, false);
  assert.equal((await producer.add('own', { id: 'own' })).duplicate, true);
  await producer.add('unique', { unique: 'key' });
  const { inbox } = worker.partitions[0]!.keys;
  await worker.partitions[0]!.link.call('RPUSH', [inbox, '{"data":"foreign"}']);
  await seen.reach(7);

  // Failed, repeated, buried, edited, replayed, discarded.
  await producer.add('retried', { backoff: { type: 'fixed', delayMs: 20 } });
  await producer.addMany([{ data: 'dies' }, { data: 'dies' }]);
  await seen.reach(8);
  await waitUntil('two are dead', async () => (await operator.counts()).dead === 2);
  const { letters } = await operator.dead.list({ limit: 10 });
  assert.equal(letters.length, 2);
  assert.equal((await operator.dead.groups()).length, 1);
  await operator.dead.edit(letters[0]!.id, 'edited');
  broken = false;
  await operator.dead.replay({ ids: [letters[0]!.id] });
  await operator.dead.discard({ ids: [letters[1]!.id] });
  assert.equal((await seen.reach(9)).at(-1), 'edited');

  // Hastened, drained, replayed with other data.
  await producer.add('retried', { id: 'again', backoff: { type: 'fixed', delayMs: 3_600_000 } });
  await waitUntil('it failed once', async () => (await operator.retries()).items.length === 1);
  assert.equal(await operator.retryNow('again'), 'delayed');
  await waitUntil('it ran again', async () => (await producer.job('again'))?.state === 'done');
  const { members } = await operator.crew();
  assert.equal(await operator.drain(members[0]!.session), 'asked');
  assert.equal(await operator.drain(members[0]!.session, false), 'working');
  broken = true;
  await producer.add('dies', { id: 'amended', labels: { tenant: 'a' } });
  await waitUntil('it is dead', async () => (await operator.dead.groupsWith({ tenant: 'a' })).letters === 1);
  assert.equal((await operator.dead.groups({ trend: true }))[0]!.perHour?.length, 24);
  await operator.dead.replayWith('amended', 'well');
  await waitUntil('it has run', () => seen.items.includes('well'));

  // Chained and scheduled.
  const first = await producer.add('first', { delayMs: 50, ...kept });
  const after = await producer.add('after', { after: [first], ...kept });
  assert.equal(await producer.result(after.id), 'after done');
  await createChain([
    { key: 'a', queue: producer, data: 'a' },
    { key: 'b', queue: producer, data: 'b', after: ['a'] },
  ]);
  await waitUntil('the chain has run', () => seen.items.includes('b'));
  await producer.schedules.set('often', { everyMs: 100 }, 'tick');
  assert.equal((await producer.schedules.list()).length, 1);
  assert.equal((await operator.schedules.page()).items.length, 1);
  await waitUntil('it ticked', () => seen.items.includes('tick'));
  await producer.schedules.remove('often');

  // Limited, paused, watched, cancelled.
  await operator.limit({
    maxActive: 10,
    rate: { max: 1_000, perMs: 1_000 },
    perGroup: { maxActive: 1, rate: { max: 1_000, perMs: 1_000 } },
    events: 100,
  });
  const events: string[] = [];
  const stop = new AbortController();
  const reading = (async () => {
    for await (const event of readEvents(operator, { after: '0', signal: stop.signal }))
      events.push(event.type);
  })();
  await producer.addMany([
    { data: 'limited', group: 'g' },
    { data: 'limited', group: 'g' },
    { data: 'limited' },
  ]);
  await waitUntil('all have run', () => seen.items.filter((data) => data === 'limited').length === 3);
  await waitUntil('events were read', () => events.length > 0);
  stop.abort();
  await reading.catch(() => {});
  assert.equal((await readRules(operator)).maxActive, 10);
  await operator.pause();
  const waits = await producer.add('waits');
  assert.equal(await producer.cancel(waits.id), 'waiting');
  await operator.resume();
  const long = await producer.add('long');
  await waitUntil('it runs', async () => (await producer.job(long.id))?.state === 'active');
  assert.equal(await operator.cancel(long.id), 'active');
  await operator.limit({
    maxActive: null,
    rate: null,
    perGroup: { maxActive: null, rate: null },
    events: null,
  });
  await operator.dead.retain({ maxCount: 10 });
  await operator.dead.sweep();
  await operator.dead.retain(null);
  assert.ok((await operator.minutes()).length > 0);
  assert.equal((await operator.counts()).dead, 0);
  await working.stop();
  assert.equal(await operator.forget(), true);
}
