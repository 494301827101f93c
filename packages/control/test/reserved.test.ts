// Queues of Sluice's own: nobody writes into them over HTTP, so that their handlers can trust what they are given.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { GiveUp } from '@sluice/queue';
import { keys, openRoom, stopServers, until } from './harness.js';

after(stopServers);

test('nobody adds a job to a queue of our own, so that no tenant acts for another', async (t) => {
  const room = await openRoom(t, { withKeys: true });
  const mail = room.queue('mail');
  mail.work(() => {
    throw new GiveUp('it died');
  });
  await mail.add('of beta', { id: 'b1', labels: { tenant: 'beta' } });
  await until('it is dead', async () => (await mail.dead.count()) === 1);
  await room.queue('sluice.webhooks').ready();
  const forged = { kind: 'dead.discard', queue: 'mail', choice: 'all', untilMs: Date.now() + 60_000 };
  for (const key of [keys.acme, keys.admin]) {
    for (const name of ['sluice.operations', 'sluice.webhooks', 'uploads']) {
      const added = await room.call('POST', `/v1/queues/${name}/jobs`, { data: forged }, key);
      assert.deepEqual([added.status, added.body.error?.code], [403, 'QUEUE_RESERVED'], name);
      assert.match(added.body.error.message, /replayed or discarded/);
    }
  }
  const when = { when: { everyMs: 1_000 }, data: forged };
  const set = await room.call('PUT', '/v1/queues/uploads/schedules/s', when, keys.admin);
  assert.equal(set.body.error.code, 'QUEUE_RESERVED');
  await until('all of them are seen', async () => {
    const { body } = await room.call('GET', '/v1/queues', undefined, keys.admin);
    const reserved = new Map(
      body.items.map((row: { name: string; reserved: boolean }) => [row.name, row.reserved]),
    );
    return reserved.get('mail') === false && reserved.get('sluice.webhooks') === true;
  });
  assert.equal(await mail.dead.count(), 1);
});

test('a dead letter of our own is replayed or discarded, never edited', async (t) => {
  const room = await openRoom(t, { withKeys: true });
  const hooks = room.queue('sluice.webhooks');
  let heals = false;
  const seen: unknown[] = [];
  hooks.work((job) => {
    if (!heals) throw new GiveUp('nobody listens');
    seen.push(job.data);
  });
  for (const id of ['d1', 'd2']) await hooks.add({ to: id }, { id, labels: { tenant: 'acme' } });
  await until('both died', async () => (await hooks.dead.count()) === 2);
  for (const key of [keys.acme, keys.admin]) {
    const data = { to: 'another tenant' };
    const edits = [
      await room.call('PATCH', '/v1/queues/sluice.webhooks/dead/d1', { data }, key),
      await room.call('POST', '/v1/queues/sluice.webhooks/jobs/d1/replay', { data }, key),
    ];
    for (const { status, body } of edits)
      assert.deepEqual([status, body.error.code], [403, 'QUEUE_RESERVED']);
  }
  heals = true;
  const replayed = await room.call('POST', '/v1/queues/sluice.webhooks/jobs/d1/replay', undefined, keys.acme);
  assert.equal(replayed.status, 200);
  await until('it ran again', async () => seen.length === 1);
  assert.deepEqual(seen, [{ to: 'd1' }]);
  const copy = await room.call('POST', '/v1/queues/sluice.webhooks/jobs/d1/replay', undefined, keys.acme);
  assert.deepEqual([copy.status, copy.body.error.code], [403, 'QUEUE_RESERVED']);
  const discard = { choice: { ids: ['d2'] } };
  const path = '/v1/queues/sluice.webhooks/dead/discard';
  assert.equal(
    (await room.call('POST', path, discard, keys.beta)).status,
    202,
    'it finds nothing of its own',
  );
  assert.equal((await room.call('POST', path, discard, keys.acme)).status, 202);
  await until('it is gone', async () => (await hooks.dead.count()) === 0);
});

test('a job of our own is cancelled by keys of the installation only', async (t) => {
  const room = await openRoom(t, { withKeys: true });
  const hooks = room.queue('sluice.webhooks');
  await hooks.add({}, { id: 'd1', delayMs: 3_600_000, labels: { tenant: 'acme' } });
  const path = '/v1/queues/sluice.webhooks/jobs/d1/cancel';
  assert.equal((await room.call('POST', path, undefined, keys.acme)).status, 403);
  assert.equal((await room.call('POST', path, undefined, keys.beta)).status, 404);
  assert.equal((await room.call('POST', path, undefined, keys.admin)).status, 200);
});
