// One tenant among the things of another: each address with something real behind it, which does not exist for whoever asks.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { GiveUp } from '@sluice/queue';
import { keys, openRoom, stopServers, until, type Loose } from './harness.js';

after(stopServers);

test('what belongs to another tenant does not exist: letters, jobs, retries, operations, uploads, traces', async (t) => {
  const room = await openRoom(t, { withKeys: true });
  const mail = room.queue('mail');
  mail.work((job) => {
    if (job.data === 'waits') throw new Error('not now');
    throw new GiveUp('for good');
  });
  const labels = { tenant: 'beta' };
  const patient = { attempts: 5, backoff: { type: 'fixed', delayMs: 3_600_000 } } as const;
  for (const id of ['dead1', 'dead2', 'dead3']) await mail.add('dies', { id, labels });
  await mail.add('waits', { id: 'waiting', labels, ...patient });
  await until('all are as they should be', async () => {
    const { dead, delayed } = await mail.counts();
    return dead === 3 && delayed === 1;
  });
  const slowly = { choice: { ids: ['dead2'] }, perSecond: 1 };
  const started = await room.call('POST', '/v1/queues/mail/dead/discard', slowly, keys.beta);
  assert.equal(started.status, 202);
  const operation = started.body.id as string;
  await until('it has ended', async () => {
    const { body } = await room.call('GET', `/v1/operations/${operation}`, undefined, keys.beta);
    return body.state === 'done';
  });
  const upload = await room.uploads.initiate({ tenant: 'beta', drive: 'main', path: 'b.bin', size: 10 });
  const asAcme = (method: string, path: string, body?: unknown) => room.call(method, path, body, keys.acme);
  for (const [method, path, body] of [
    ['GET', '/v1/queues/mail/dead/dead1'],
    ['PATCH', '/v1/queues/mail/dead/dead1', { data: 'mine now' }],
    ['GET', '/v1/queues/mail/jobs/dead1'],
    ['POST', '/v1/queues/mail/jobs/dead1/retry'],
    ['POST', '/v1/queues/mail/jobs/dead1/replay', { data: 'mine now' }],
    ['POST', '/v1/queues/mail/jobs/waiting/cancel'],
    ['POST', '/v1/queues/mail/jobs/waiting/retry'],
    ['GET', `/v1/operations/${operation}`],
    ['POST', `/v1/operations/${operation}/cancel`],
    ['POST', `/v1/operations/${operation}/resume`],
    ['GET', `/v1/uploads/${upload.id}`],
    ['GET', `/v1/uploads/${upload.id}/events`],
    ['POST', `/v1/uploads/${upload.id}/complete`],
    ['DELETE', `/v1/uploads/${upload.id}`],
    ['GET', `/v1/nodes/${upload.nodeId}`],
    ['GET', `/v1/nodes/${upload.nodeId}/verifications`],
    ['DELETE', `/v1/nodes/${upload.nodeId}`],
    ['GET', '/v1/trace/dead1'],
    ['GET', `/v1/trace/${upload.id}`],
  ] as [string, string, unknown?][])
    assert.equal((await asAcme(method, path, body)).status, 404, `${method} ${path}`);
  for (const path of [
    '/v1/queues/mail/dead',
    '/v1/queues/mail/jobs',
    '/v1/dead/groups',
    '/v1/jobs/dead1',
    '/v1/retries',
    '/v1/operations',
    '/v1/uploads',
  ])
    assert.deepEqual((await asAcme('GET', path)).body.items, [], path);
  assert.equal((await asAcme('GET', '/v1/retries')).body.summary.waiting ?? 0, 0);
  assert.equal((await asAcme('GET', '/v1/queues/mail/dead/export')).body, '');
  for (const word of ['replay', 'discard'])
    for (const choice of ['all', { ids: ['dead1'] }, { text: 'good' }]) {
      const path = `/v1/queues/mail/dead/${word}`;
      assert.equal((await asAcme('POST', path, { choice, dryRun: true })).body.total, 0, word);
      const { body } = await asAcme('POST', path, { choice });
      await until(
        'it has ended',
        async () => (await asAcme('GET', `/v1/operations/${body.id}`)).body.state === 'done',
      );
    }
  // Nothing has changed for whom it belongs to.
  const letters = (await room.call('GET', '/v1/queues/mail/dead', undefined, keys.beta)).body.items;
  assert.deepEqual(letters.map((letter: Loose) => [letter.id, letter.data]).toSorted(), [
    ['dead1', 'dies'],
    ['dead3', 'dies'],
  ]);
  assert.equal((await mail.job('waiting'))?.state, 'delayed');
  assert.equal((await room.uploads.status(upload.id)).state, 'PENDING');
});

test('keys of another tenant do not exist, and lists leave them out', async (t) => {
  const room = await openRoom(t, { withKeys: true });
  const make = async (tenant: string) =>
    (await room.call('POST', '/v1/keys', { name: 'admin', tenant, role: 'admin' }, keys.admin)).body;
  const [acme, beta] = [await make('acme'), await make('beta')];
  for (const [method, path] of [
    ['DELETE', `/v1/keys/${beta.id}`],
    ['POST', `/v1/keys/${beta.id}/rotate`],
  ] as const)
    assert.equal((await room.call(method, path, undefined, acme.key)).status, 404, path);
  const { body } = await room.call('GET', '/v1/keys', undefined, acme.key);
  assert.deepEqual(
    body.items.map((key: Loose) => key.id),
    [acme.id],
  );
  assert.equal((await room.call('GET', '/v1/drives', undefined, beta.key)).status, 200);
});
