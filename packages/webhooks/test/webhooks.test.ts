// Webhooks from end to end: told once per event and webhook, signed, retried, given up, and each tenant its own.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { isSluiceError } from '@sluice/base';
import { verify, type WebhookEvent } from '../src/index.js';
import { startReceiver, type Got } from './receiver.js';
import { eventually, useServers } from './setup.js';

const bed = useServers();

function event(more: Partial<WebhookEvent> = {}): WebhookEvent {
  const id = randomUUID();
  const occurredAt = '2025-11-27T10:00:00.000Z';
  return {
    id,
    topic: 'repository.documents.created',
    tenant: 'acme',
    occurredAt,
    data: { nodeId: id },
    ...more,
  };
}

const code = (wanted: string) => (error: unknown) => isSluiceError(error, wanted);
const single = (got: Got, name: string) => String(got.headers[name]);

test('an event reaches the webhook that wants it, signed, and a repetition does not', async (t) => {
  const { webhooks } = await bed.open(t);
  const receiver = await startReceiver(t);
  const { id, secret } = await webhooks.create({
    tenant: 'acme',
    url: receiver.url,
    topics: ['repository.documents.*'],
  });
  const happened = event();
  assert.equal(await webhooks.publish([happened]), 1);
  // A delivery is noted after its answer.
  const noted = async () => (await webhooks.deliveries('acme', id)).length;
  await eventually('it was delivered', async () => (await noted()) === 1);
  // The relay died and publishes again, in two processes at once.
  await Promise.all([webhooks.publish([happened]), webhooks.publish([happened, event()])]);
  await eventually('the other one was delivered', async () => (await noted()) === 2);
  assert.equal(receiver.got.length, 2);
  const [got] = receiver.got;
  assert.deepEqual(JSON.parse(got!.body), {
    id: happened.id,
    topic: 'repository.documents.created',
    tenant: 'acme',
    occurredAt: '2025-11-27T10:00:00.000Z',
    data: { nodeId: happened.id },
  });
  const signature = single(got!, 'x-sluice-signature');
  const timestamp = single(got!, 'x-sluice-timestamp');
  assert.ok(verify(secret, { signature, timestamp, body: got!.body }));
  assert.equal(single(got!, 'x-sluice-topic'), 'repository.documents.created');
  const [, first] = await webhooks.deliveries('acme', id);
  assert.deepEqual(
    [first!.id, first!.state, first!.status, first!.attempt, first!.eventId],
    [single(got!, 'x-sluice-id'), 'delivered', 204, 1, happened.id],
  );
});

test('a webhook hears of its own tenant and its own topics; one of the installation of everything', async (t) => {
  const { webhooks } = await bed.open(t);
  const [acme, beta, all] = await Promise.all([startReceiver(t), startReceiver(t), startReceiver(t)]);
  await webhooks.create({ tenant: 'acme', url: acme.url, topics: ['repository.uploads.completed'] });
  await webhooks.create({ tenant: 'beta', url: beta.url, topics: ['*'] });
  await webhooks.create({ tenant: '*', url: all.url, topics: ['*'] });
  const off = await webhooks.create({ tenant: 'acme', url: acme.url, topics: ['*'], active: false });
  assert.equal(off.active, false);
  const { tenant: _, ...nobodys } = event({ topic: 'sluice.alerts.raised' });
  await webhooks.publish([
    event(),
    event({ topic: 'repository.uploads.completed' }),
    event({ tenant: 'beta' }),
    nobodys,
  ]);
  await eventually(
    'all were told',
    () => acme.got.length === 1 && beta.got.length === 1 && all.got.length === 4,
  );
});

test('a receiver that fails is tried again with the same id and the same body until it takes it', async (t) => {
  const { webhooks } = await bed.open(t);
  const receiver = await startReceiver(t);
  let tries = 0;
  receiver.answer = (_got, response) => {
    tries++;
    if (tries === 1) return 500;
    if (tries === 2) return void response.destroy();
    if (tries === 3) return 404;
    return 200;
  };
  const { id } = await webhooks.create({ tenant: 'acme', url: receiver.url, topics: ['*'] });
  await webhooks.publish([event()]);
  await eventually(
    'it was taken',
    async () => (await webhooks.deliveries('acme', id))[0]?.state === 'delivered',
  );
  assert.equal(receiver.got.length, 4);
  assert.equal(new Set(receiver.got.map((got) => single(got, 'x-sluice-id'))).size, 1);
  assert.equal(new Set(receiver.got.map(({ body }) => body)).size, 1);
  assert.deepEqual(
    receiver.got.map((got) => single(got, 'x-sluice-attempt')),
    ['1', '2', '3', '4'],
  );
  const [delivery, ...others] = await webhooks.deliveries('acme', id);
  assert.deepEqual([delivery!.attempt, others.length], [4, 0]);
});

test('what is never taken ends with the dead letters, and can be replayed from there', async (t) => {
  const { webhooks } = await bed.open(t, { attempts: 3 });
  const receiver = await startReceiver(t);
  receiver.answer = () => 500;
  const { id, secret } = await webhooks.create({
    tenant: 'acme',
    url: `${receiver.url}?token=do-not-show`,
    topics: ['*'],
  });
  await webhooks.publish([event()]);
  await eventually('it died', async () => (await webhooks.queue.dead.count()) === 1);
  assert.equal(receiver.got.length, 3);
  const { letters } = await webhooks.queue.dead.list();
  const shown = JSON.stringify(letters);
  assert.match(shown, /it answered 500/);
  assert.deepEqual(letters[0]!.labels, { tenant: 'acme' });
  assert.ok(!shown.includes('do-not-show') && !shown.includes(secret));
  assert.equal((await webhooks.deliveries('acme', id))[0]!.state, 'dead');
  receiver.answer = () => 200;
  await webhooks.queue.dead.replay('all');
  await eventually(
    'it was taken',
    async () => (await webhooks.deliveries('acme', id))[0]!.state === 'delivered',
  );
});

test('410 ends it at once; Retry-After is obeyed', async (t) => {
  const { webhooks } = await bed.open(t, { firstPauseMs: 3_600_000 });
  const receiver = await startReceiver(t);
  receiver.answer = ({ path }, response) => {
    if (path === '/gone') return 410;
    if (receiver.got.filter((got) => got.path === '/busy').length > 1) return 200;
    response.setHeader('Retry-After', '0');
    return 429;
  };
  const base = new URL('/', receiver.url).href;
  const gone = await webhooks.create({ tenant: 'acme', url: `${base}gone`, topics: ['*'] });
  const busy = await webhooks.create({ tenant: 'acme', url: `${base}busy`, topics: ['*'] });
  await webhooks.publish([event()]);
  const stateOf = async (id: string) => (await webhooks.deliveries('acme', id))[0]?.state;
  await eventually('one died', async () => (await stateOf(gone.id)) === 'dead');
  await eventually('one was taken', async () => (await stateOf(busy.id)) === 'delivered');
  assert.equal(receiver.got.filter(({ path }) => path === '/gone').length, 1);
});

test('a name that points elsewhere by the time of the delivery is not followed there', async (t) => {
  const answers = [['8.8.8.8'], ['169.254.169.254'], ['127.0.0.1']];
  const asked: string[] = [];
  const resolve = async (host: string) => {
    asked.push(host);
    return answers.shift() ?? ['8.8.8.8'];
  };
  const { webhooks } = await bed.open(t, { resolve, allow: [] });
  const receiver = await startReceiver(t);
  const url = `http://rebind.example:${receiver.port}/`;
  const { id } = await webhooks.create({ tenant: 'acme', url, topics: ['*'] });
  await webhooks.publish([event()]);
  await eventually(
    'it was refused',
    async () => (await webhooks.deliveries('acme', id))[0]?.state === 'dead',
  );
  assert.match((await webhooks.deliveries('acme', id))[0]!.error!, /169\.254\.169\.254/);
  // The delivery says so before its job ends.
  await eventually('its letter is there', async () => (await webhooks.queue.dead.count()) === 1);
  await webhooks.queue.dead.replay('all');
  await eventually('it was refused again', async () => {
    const [delivery] = await webhooks.deliveries('acme', id);
    return delivery?.state === 'dead' && delivery.error!.includes('127.0.0.1');
  });
  assert.deepEqual(asked, ['rebind.example', 'rebind.example', 'rebind.example']);
  assert.equal(receiver.got.length, 0);
});

test('the name is looked up once for each attempt, and the connection goes to what was found', async (t) => {
  let asked = 0;
  // After the check it would mean another machine.
  const resolve = async () => (asked++ < 2 ? ['127.0.0.1'] : ['127.0.0.99']);
  const { webhooks } = await bed.open(t, { resolve });
  const receiver = await startReceiver(t);
  await webhooks.create({ tenant: 'acme', url: `http://rebind.example:${receiver.port}/`, topics: ['*'] });
  await webhooks.publish([event()]);
  await eventually('it was delivered', () => receiver.got.length === 1);
  assert.equal(asked, 2);
  assert.equal(receiver.got[0]!.headers.host, `rebind.example:${receiver.port}`);
});

test('an address out of bounds is refused when a webhook is made or changed', async (t) => {
  const { webhooks } = await bed.open(t, { allow: [] });
  const make = (url: string) => webhooks.create({ tenant: 'acme', url, topics: ['*'] });
  await assert.rejects(make('http://127.0.0.1:8080/'), code('ADDRESS_REFUSED'));
  await assert.rejects(make('http://localhost:8080/'), code('ADDRESS_REFUSED'));
  await assert.rejects(make('http://[::ffff:10.0.0.1]/'), code('ADDRESS_REFUSED'));
  await assert.rejects(make('ftp://example.com/'), code('WEBHOOK_INVALID'));
  assert.deepEqual(await webhooks.list('acme'), []);
  const { id } = await make('https://name-that-is-not-there.invalid/');
  await assert.rejects(webhooks.update('acme', id, { url: 'http://0x7f.1/' }), code('ADDRESS_REFUSED'));
  assert.equal((await webhooks.get('acme', id)).url, 'https://name-that-is-not-there.invalid/');
});

test('while a secret is replaced both sign; the old one ends with its time of grace', async (t) => {
  const { webhooks } = await bed.open(t);
  const receiver = await startReceiver(t);
  const { id, secret: old } = await webhooks.create({ tenant: 'acme', url: receiver.url, topics: ['*'] });
  const { secret: fresh, secrets } = await webhooks.rotate('acme', id, 3_600_000);
  assert.equal(secrets, 2);
  await webhooks.publish([event()]);
  await eventually('it was delivered', () => receiver.got.length === 1);
  const isFrom = (secret: string, got: Got) =>
    verify(secret, {
      signature: single(got, 'x-sluice-signature'),
      timestamp: single(got, 'x-sluice-timestamp'),
      body: got.body,
    });
  assert.ok(isFrom(old, receiver.got[0]!) && isFrom(fresh, receiver.got[0]!));
  const { secret: newest } = await webhooks.rotate('acme', id, 0);
  await webhooks.publish([event()]);
  await eventually('it was delivered', () => receiver.got.length === 2);
  assert.deepEqual(
    [old, fresh, newest].map((secret) => isFrom(secret, receiver.got[1]!)),
    [false, false, true],
  );
  assert.equal((await webhooks.get('acme', id)).secrets, 1);
});

test('no secret is in the database or in Redis, and none is shown again', async (t) => {
  const { webhooks, databaseUrl } = await bed.open(t);
  const receiver = await startReceiver(t);
  const { id, secret } = await webhooks.create({ tenant: 'acme', url: receiver.url, topics: ['*'] });
  await webhooks.publish([event()]);
  await eventually('it was delivered', () => receiver.got.length === 1);
  const rows = await bed.postgres.query('SELECT * FROM webhooks', [], databaseUrl);
  const shown = JSON.stringify([
    rows,
    await webhooks.get('acme', id),
    await webhooks.list('acme'),
    await webhooks.update('acme', id, { topics: ['jobs.*'] }),
    await webhooks.deliveries('acme', id),
    await webhooks.queue.browse(),
  ]);
  assert.ok(!shown.includes(secret) && !shown.includes(secret.slice(6)));
});

test('one tenant neither sees nor changes the webhooks of another', async (t) => {
  const { webhooks } = await bed.open(t);
  const receiver = await startReceiver(t);
  const { id } = await webhooks.create({ tenant: 'acme', url: receiver.url, topics: ['*'] });
  for (const act of [
    () => webhooks.get('beta', id),
    () => webhooks.update('beta', id, { active: false }),
    () => webhooks.rotate('beta', id),
    () => webhooks.test('beta', id),
    () => webhooks.deliveries('beta', id),
    () => webhooks.delete('beta', id),
  ])
    await assert.rejects(act, code('WEBHOOK_NOT_FOUND'));
  assert.deepEqual(await webhooks.list('beta'), []);
  assert.equal((await webhooks.list('acme')).length, 1);
});

test('a webhook that was switched off or deleted gets nothing more, also of what waits', async (t) => {
  const { webhooks } = await bed.open(t);
  const receiver = await startReceiver(t);
  const { id } = await webhooks.create({ tenant: 'acme', url: receiver.url, topics: ['*'] });
  await webhooks.queue.pause();
  await webhooks.publish([event()]);
  await webhooks.update('acme', id, { active: false });
  await webhooks.queue.resume();
  await eventually(
    'it was skipped',
    async () => (await webhooks.deliveries('acme', id))[0]?.state === 'skipped',
  );
  assert.equal(await webhooks.publish([event()]), 0);
  await webhooks.update('acme', id, { active: true });
  const delivery = await webhooks.test('acme', id);
  await eventually('the test arrived', () => receiver.got.length === 1);
  assert.equal(single(receiver.got[0]!, 'x-sluice-id'), delivery);
  assert.equal(JSON.parse(receiver.got[0]!.body).topic, 'sluice.webhooks.test');
  await webhooks.delete('acme', id);
  await assert.rejects(webhooks.deliveries('acme', id), code('WEBHOOK_NOT_FOUND'));
});

test('the list of deliveries has a bound, and so has the number of webhooks', async (t) => {
  const { webhooks } = await bed.open(t);
  const receiver = await startReceiver(t);
  const { id } = await webhooks.create({ tenant: 'acme', url: receiver.url, topics: ['*'] });
  await webhooks.publish(Array.from({ length: 150 }, () => event()));
  await eventually('all were delivered', () => receiver.got.length === 150);
  await eventually('all were noted', async () => (await webhooks.queue.counts()).active === 0);
  assert.equal((await webhooks.deliveries('acme', id)).length, 100);
  assert.equal((await webhooks.deliveries('acme', id, 5)).length, 5);
  for (let made = 1; made < 100; made++)
    await webhooks.create({ tenant: 'acme', url: receiver.url, topics: ['jobs.dead'] });
  const more = webhooks.create({ tenant: 'acme', url: receiver.url, topics: ['*'] });
  await assert.rejects(more, code('TOO_MANY_WEBHOOKS'));
});

test('a delivery that was under way when its process died is made by the next one', async (t) => {
  const { webhooks, records, prefix } = await bed.open(t, { workers: 0 });
  const receiver = await startReceiver(t);
  const { id } = await webhooks.create({ tenant: 'acme', url: receiver.url, topics: ['*'] });
  // A worker that takes the job and is never heard of again.
  const dying = webhooks.queue.work(() => new Promise(() => {}), { leaseMs: 500 });
  await dying.start();
  await webhooks.publish([event()]);
  await eventually('it is under way', async () => (await webhooks.queue.counts()).active === 1);
  const { Webhooks } = await import('../src/index.js');
  const next = new Webhooks({
    ...{ records, redis: bed.redis.url, prefix, secret: 'only for this test', allow: ['127.0.0.1'] },
    leaseMs: 500,
  });
  await next.start();
  void dying.stop(0);
  await eventually('it was noted', async () => (await next.deliveries('acme', id)).length === 1);
  assert.equal(receiver.got.length, 1);
  await next.stop(500);
});
