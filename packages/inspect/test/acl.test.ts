// Every question, under the rights that docs/acl.md grants and no others.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { createChain, GiveUp, Queue } from '@sluice/queue';
import { startRedis } from '@sluice/testbed';
import { Inspect } from '../src/index.js';
import { eventually } from './setup.js';

const password = 'secret';
const document = readFileSync(new URL('../../../../docs/acl.md', import.meta.url), 'utf8');

test('all that inspect does can be done under the minimal rights, and Redis denied nothing', async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const rights = /^ACL SETUSER sluice-inspect (.*)$/m.exec(document)![1]!.replace('<password>', password);
  await redis.command('ACL', 'SETUSER', 'sluice-inspect', ...rights.split(' '));

  const owner = new Queue<string>('mail', { redis: redis.url, attempts: 1 });
  t.after(() => owner.close(500));
  owner.work(async (job) => {
    await job.log('begins');
    if (job.data === 'bad') throw new GiveUp('bad');
    if (job.data === 'again') throw new Error('again');
  });
  await owner.add('bad', { id: 'dead' });
  await owner.add('good', { id: 'done' });
  await owner.limit({ events: 100 });
  await owner.add('again', { attempts: 2, backoff: { type: 'fixed', delayMs: 3_600_000 } });
  const chain = [
    { key: 'a', queue: owner, data: 'later', options: { delayMs: 3_600_000 } },
    { key: 'b', queue: owner, data: 'last', after: ['a'] },
  ];
  const { jobs } = await createChain(chain);
  await owner.schedules.set('often', { everyMs: 1_000_000 }, 'x');
  await eventually(async () => (await owner.dead.count()) === 1);
  await eventually(async () => (await owner.retries()).items.length === 1);

  await redis.command('ACL', 'LOG', 'RESET');
  const url = redis.urlAs('sluice-inspect', password);
  const queue = new Queue<string>('mail', { redis: url });
  t.after(() => queue.close());
  const inspect = new Inspect({ redis: url, queues: [queue], everyMs: 50 });
  t.after(() => inspect.close());
  await inspect.start();
  let looks = 0;
  inspect.watch(() => looks++);
  await eventually(() => looks > 2);
  assert.deepEqual((await inspect.overview()).problems, []);
  assert.equal((await inspect.queue('mail'))?.dead.letters, 1);
  assert.equal((await inspect.jobs('mail')).complete, true);
  assert.equal((await inspect.jobs('mail', { error: 'bad' })).items.length, 1);
  for (const id of ['dead', 'done', jobs['a']!.id, jobs['b']!.id])
    assert.ok(await inspect.job('mail', id), id);
  assert.equal((await inspect.deadGroups()).items.length, 1);
  assert.equal((await inspect.deadGroups({ labels: { tenant: 'nobody' } })).scanned, 1);
  assert.equal((await inspect.deadGroups({ trend: true })).items[0]?.perHour?.length, 24);
  assert.equal((await inspect.retries()).items.length, 1);
  assert.equal((await inspect.retrySummary()).count, 1);
  assert.equal((await inspect.workers()).items.length, 1);
  assert.equal((await inspect.schedules()).items.length, 1);
  await eventually(async () => {
    const { points } = await inspect.series({ queue: 'mail', step: 'minute' });
    return points.some(({ figures }) => figures !== null);
  });
  await inspect.series({ step: 'hour' });
  const everything = new Inspect({ redis: url, queues: 'all', history: false });
  t.after(() => everything.close());
  assert.equal((await everything.queues()).length, 1);
  assert.deepEqual(await redis.command('ACL', 'LOG'), []);
});
