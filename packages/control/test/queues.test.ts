// Queues, jobs, workers and schedules over HTTP, against real queues with real workers.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { GiveUp } from '@sluice/queue';
import { keys, openRoom, stopServers, until, type Loose } from './harness.js';

after(stopServers);

test('every queue is listed with its counts, is paused and resumed, and keeps its limits', async (t) => {
  const room = await openRoom(t);
  const mail = room.queue('mail');
  await mail.addMany([{ data: 1 }, { data: 2 }]);
  const listed = await until('it is seen', async () => {
    const { body } = await room.call('GET', '/v1/queues');
    return body.items.find((queue: Loose) => queue.name === 'mail' && queue.counts.waiting === 2);
  });
  assert.equal(listed.paused, false);
  assert.deepEqual((await room.call('POST', '/v1/queues/mail/pause')).body, { name: 'mail', paused: true });
  const limits = { maxActive: 3, perGroup: { maxActive: 1 }, rate: { max: 5, perMs: 1_000 } };
  const limited = await room.call('PATCH', '/v1/queues/mail/limits', limits);
  assert.equal(limited.body.paused, true);
  const { body } = await room.call('GET', '/v1/queues/mail');
  assert.deepEqual([body.rules.maxActive, body.rules.perGroup.maxActive, body.rules.rate.max], [3, 1, 5]);
  await room.call('PATCH', '/v1/queues/mail/limits', { rate: null });
  assert.equal((await room.call('GET', '/v1/queues/mail')).body.rules.rate ?? null, null);
  const done: unknown[] = [];
  mail.work((job) => done.push(job.data));
  assert.deepEqual(done, []);
  await room.call('POST', '/v1/queues/mail/resume');
  await until('both are done', async () => done.length === 2);
});

test('an unknown queue is 404, a wrong question 400 with what is wrong, and nothing changes', async (t) => {
  const room = await openRoom(t);
  const mail = room.queue('mail');
  const { id } = await mail.add({ to: 'ada' });
  const wrong: [string, string, unknown, number, RegExp][] = [
    ['GET', '/v1/queues/nowhere', undefined, 404, /nowhere/],
    ['POST', '/v1/queues/nowhere/pause', undefined, 404, /nowhere/],
    ['GET', '/v1/queues/mail/jobs?state=lost', undefined, 400, /state/],
    ['GET', '/v1/queues/mail/jobs?limit=0', undefined, 400, /limit/],
    ['GET', '/v1/queues/mail/jobs?field=a', undefined, 400, /equals/],
    ['GET', '/v1/queues/mail/jobs?cursor=%00', undefined, 400, /cursor/],
    ['GET', '/v1/queues/mail/series?step=year', undefined, 400, /step/],
    ['GET', '/v1/queues/mail/dead?from=yesterday', undefined, 400, /from/],
    ['PATCH', '/v1/queues/mail/limits', {}, 400, /properties|fewer/],
    ['PATCH', '/v1/queues/mail/limits', { maxActive: 0 }, 400, /./],
    ['PATCH', '/v1/queues/mail/limits', { paused: true }, 400, /additional/],
    ['POST', '/v1/queues/mail/jobs', {}, 400, /data/],
    ['POST', '/v1/queues/mail/jobs/none/retry', undefined, 404, /none/],
    ['POST', `/v1/queues/mail/jobs/${id}/retry`, undefined, 409, /waiting/],
    ['PUT', '/v1/queues/mail/schedules/s', { when: { cron: 'never' }, data: 1 }, 400, /cron/i],
    ['DELETE', '/v1/queues/mail/schedules/none', undefined, 404, /none/],
    ['POST', '/v1/queues/mail/workers/none/drain', undefined, 404, /none/],
    ['GET', '/v1/trace/none', undefined, 404, /none/],
    ['GET', '/v1/cache/none/explain?key=1', undefined, 404, /none/],
    ['GET', '/v1/operations/none', undefined, 404, /none/],
    ['GET', '/v1/operations?state=lost', undefined, 400, /state/],
    ['GET', '/v1/events?after=x', undefined, 400, /cursor/],
    ['GET', '/v1/live?topics=everything', undefined, 400, /topics/],
  ];
  for (const [method, path, body, status, about] of wrong) {
    const answer = await room.call(method, path, body);
    assert.equal(answer.status, status, `${method} ${path}: ${JSON.stringify(answer.body)}`);
    assert.match(answer.body.error.message, about, `${method} ${path}`);
  }
  assert.equal((await mail.job(id))?.state, 'waiting');
});

test('jobs are added, found by state, field and owner, looked into, retried and cancelled', async (t) => {
  const room = await openRoom(t);
  const mail = room.queue('mail');
  await mail.ready();
  const added = await room.call('POST', '/v1/queues/mail/jobs', {
    ...{ data: { user: { id: 17 } }, id: 'mine', delayMs: 3_600_000, owner: 'ada', attempts: 2 },
  });
  assert.deepEqual([added.status, added.body.id, added.body.duplicate], [201, 'mine', false]);
  const again = await room.call('POST', '/v1/queues/mail/jobs', { data: 1, id: 'mine' });
  assert.equal(again.body.duplicate, true);
  await mail.add({ user: { id: 18 } });
  for (const query of ['state=delayed', 'field=user.id&equals=17', 'owner=ada', 'id=mine']) {
    const { body } = await room.call('GET', `/v1/queues/mail/jobs?${query}`);
    assert.deepEqual(
      body.items.map((job: Loose) => job.id),
      ['mine'],
      query,
    );
    assert.equal(body.next, null);
    assert.ok(body.complete && body.scanned >= 1);
  }
  assert.equal((await room.call('GET', '/v1/jobs/mine')).body.items[0].queue, 'mail');
  let failures = 0;
  mail.work(async (job) => {
    await job.log('was here');
    if (job.data.user.id === 17 && failures++ === 0) throw new Error('the first time');
    if (job.data.user.id === 17) throw new GiveUp('for good');
  });
  const retried = await room.call('POST', '/v1/queues/mail/jobs/mine/retry');
  assert.deepEqual(retried.body, { queue: 'mail', id: 'mine', was: 'delayed' });
  const dead = await until('it died', async () => {
    const { body } = await room.call('GET', '/v1/queues/mail/jobs/mine');
    return body.state === 'dead' && body;
  });
  assert.deepEqual(dead.data, { user: { id: 17 } });
  assert.deepEqual(dead.labels, { tenant: 'default', owner: 'ada' });
  assert.match(dead.error.stack, /for good/);
  assert.ok(dead.logs.includes('was here') && dead.timeline.length >= 3);
  const replayed = await room.call('POST', '/v1/queues/mail/jobs/mine/replay', {
    data: { user: { id: 19 } },
  });
  assert.deepEqual([replayed.status, replayed.body.was], [200, 'dead']);
  await until('it is done', async () => (await mail.job('mine'))?.state === 'done');
  const late = await mail.add({ user: { id: 20 } }, { delayMs: 3_600_000 });
  const cancelled = await room.call('POST', `/v1/queues/mail/jobs/${late.id}/cancel`);
  assert.equal(cancelled.body.was, 'delayed');
});

test('a payload is answered as JSON, as base64 if it is none, and not at all once the job has ended', async (t) => {
  const room = await openRoom(t);
  const mail = room.queue('mail');
  const options = { delayMs: 3_600_000, keepResultMs: 60_000 };
  const read = async (id: string): Promise<Loose> =>
    (await room.call('GET', `/v1/queues/mail/jobs/${id}`)).body;
  const shown = ({ data, base64, bytes }: Loose): unknown => ({ data, base64, bytes });
  const json = await mail.add(null, options);
  assert.deepEqual(shown(await read(json.id)), { data: null, base64: undefined, bytes: 4 });
  const none = await mail.add(undefined, options);
  assert.deepEqual(shown(await read(none.id)), { data: null, base64: undefined, bytes: 0 });
  const binary = await mail.add(Uint8Array.of(0, 255), options);
  assert.deepEqual(shown(await read(binary.id)), { data: undefined, base64: 'AP8=', bytes: 2 });
  mail.work(() => 'fine');
  await room.call('POST', `/v1/queues/mail/jobs/${json.id}/retry`);
  const done = await until('it is done', async () => {
    const job = await read(json.id);
    return job.state === 'done' && job;
  });
  assert.deepEqual(
    [done.result, shown(done)],
    ['fine', { data: undefined, base64: undefined, bytes: undefined }],
  );
});

test('jobs that wait for their next attempt are listed by due time, with the error, and can be hurried', async (t) => {
  const room = await openRoom(t);
  const slow = room.queue('slow');
  let fails = true;
  slow.work((job) => {
    if (fails) throw new Error(`no luck for ${String(job.data)}`);
  });
  const patient = { attempts: 5, backoff: { type: 'fixed', delayMs: 3_600_000 } } as const;
  const { id } = await slow.add('ada', patient);
  const retry = await until('it waits', async () => {
    const { body } = await room.call('GET', '/v1/retries?queue=slow');
    return body.items[0];
  });
  assert.deepEqual([retry.id, retry.queue], [id, 'slow']);
  assert.ok(retry.dueMs > Date.now() + 3_000_000);
  assert.match(JSON.stringify(retry), /no luck for ada/);
  fails = false;
  await room.call('POST', `/v1/queues/slow/jobs/${id}/retry`);
  await until('nothing waits', async () => (await room.call('GET', '/v1/retries')).body.items.length === 0);
});

test('workers are listed and drained from outside, schedules are set and end', async (t) => {
  const room = await openRoom(t);
  const mail = room.queue('mail');
  const seen: unknown[] = [];
  const worker = mail.work((job) => void seen.push(job.data), { name: 'ada' });
  await worker.start();
  const row = await until('it is there', async () => {
    const { body } = await room.call('GET', '/v1/workers?queue=mail');
    return body.items[0];
  });
  assert.equal(row.name, 'ada');
  const path = `/v1/queues/mail/workers/${row.session}/drain`;
  assert.equal((await room.call('POST', path)).body.drain, 'asked');
  await until('it is drained', async () => {
    const { body } = await room.call('GET', '/v1/workers');
    return body.items.find((one: Loose) => one.name === 'ada')?.drain === 'drained';
  });
  await mail.add('waits');
  assert.deepEqual(seen, []);
  await room.call('POST', path, { drain: false });
  await until('it works again', async () => seen.length === 1);
  const set = { when: { everyMs: 3_600_000 }, data: { report: true }, missed: 'skip' };
  const schedule = await room.call('PUT', '/v1/queues/mail/schedules/hourly', set);
  assert.deepEqual([schedule.status, schedule.body.name], [200, 'hourly']);
  const { body } = await room.call('GET', '/v1/schedules');
  assert.deepEqual(
    body.items.map((one: Loose) => [one.queue, one.name]),
    [['mail', 'hourly']],
  );
  assert.equal((await room.call('DELETE', '/v1/queues/mail/schedules/hourly')).body.removed, true);
});

test('a tenant sees and touches its own jobs only; what is of the installation is refused', async (t) => {
  const room = await openRoom(t, { withKeys: true });
  const mail = room.queue('mail');
  await mail.ready();
  const mine = await room.call(
    'POST',
    '/v1/queues/mail/jobs',
    { data: 'a', id: 'of-acme', delayMs: 3_600_000 },
    keys.acme,
  );
  assert.deepEqual([mine.status, mine.body.id], [201, 'acme:of-acme']);
  await room.call(
    'POST',
    '/v1/queues/mail/jobs',
    { data: 'b', id: 'of-beta', delayMs: 3_600_000 },
    keys.beta,
  );
  await mail.add('nobody', { id: 'of-nobody' });
  const ids = async (key: string) =>
    (await room.call('GET', '/v1/queues/mail/jobs', undefined, key)).body.items
      .map((job: Loose) => job.id)
      .sort();
  assert.deepEqual(await ids(keys.acme), ['acme:of-acme']);
  assert.deepEqual(await ids(keys.beta), ['beta:of-beta']);
  assert.deepEqual(await ids(keys.admin), ['acme:of-acme', 'beta:of-beta', 'of-nobody']);
  for (const id of ['beta:of-beta', 'of-nobody']) {
    for (const [method, path] of [
      ['GET', ''],
      ['POST', '/retry'],
      ['POST', '/cancel'],
      ['POST', '/replay'],
    ] as const) {
      const { status } = await room.call(method, `/v1/queues/mail/jobs/${id}${path}`, undefined, keys.acme);
      assert.equal(status, 404, `${method} ${id}${path}`);
    }
    assert.deepEqual((await room.call('GET', `/v1/jobs/${id}`, undefined, keys.acme)).body.items, []);
    assert.equal((await room.call('GET', `/v1/trace/${id}`, undefined, keys.acme)).status, 404);
  }
  assert.equal((await mail.job('beta:of-beta'))?.state, 'delayed');
  assert.equal(
    (await room.call('POST', '/v1/queues/mail/jobs/acme:of-acme/cancel', undefined, keys.viewer)).status,
    403,
  );
  for (const path of [
    '/v1/overview',
    '/v1/queues',
    '/v1/workers',
    '/v1/redis',
    '/v1/cache',
    '/v1/live?topics=overview',
  ])
    assert.equal((await room.call('GET', path, undefined, keys.acme)).status, 403, path);
  assert.equal((await room.call('POST', '/v1/queues/mail/pause', undefined, keys.acme)).status, 403);
  assert.equal((await room.call('GET', '/v1/queues')).status, 401);
});

test('the ids, unique keys and groups of tenants are apart, and a tenant owns what it adds', async (t) => {
  const room = await openRoom(t, { withKeys: true });
  const mail = room.queue('mail');
  await mail.ready();
  const add = (body: object, key: string) =>
    room.call('POST', '/v1/queues/mail/jobs', { data: 1, delayMs: 3_600_000, ...body }, key);
  const names = { id: 'invoice-1', unique: 'daily', group: 'g' };
  const added = [await add(names, keys.acme), await add(names, keys.beta), await add(names, keys.admin)];
  assert.deepEqual(
    added.map(({ status, body }) => [status, body.id, body.duplicate]),
    [
      [201, 'acme:invoice-1', false],
      [201, 'beta:invoice-1', false],
      [201, 'invoice-1', false],
    ],
  );
  const again = await add(names, keys.acme);
  assert.deepEqual([again.body.id, again.body.duplicate], ['acme:invoice-1', true]);
  const second = await add({ ...names, id: 'invoice-2' }, keys.acme);
  assert.notEqual(second.body.duplicate, false, 'the unique key is taken within the tenant');
  const groups = await Promise.all(
    ['acme:invoice-1', 'beta:invoice-1', 'invoice-1'].map(async (id) => {
      const { body } = await room.call('GET', `/v1/queues/mail/jobs/${id}`, undefined, keys.admin);
      return [body.group, body.labels.owner];
    }),
  );
  assert.deepEqual(groups, [
    ['acme:g', 'SLUICE_KEYS 2'],
    ['beta:g', 'SLUICE_KEYS 4'],
    ['g', 'SLUICE_KEYS 1'],
  ]);
  const foreign = await add({ owner: 'SLUICE_KEYS 4' }, keys.acme);
  assert.deepEqual([foreign.status, foreign.body.error.code], [403, 'FORBIDDEN']);
  assert.equal((await add({ owner: 'somebody' }, keys.admin)).status, 201);
});
