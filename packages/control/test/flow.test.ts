// What goes through the whole system: uploads under way, events, the trace of one id, the cache, the overview, live updates.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Cache, defineCache } from '@sluice/cache';
import { RedisStreamSink } from '@sluice/events';
import { GiveUp } from '@sluice/queue';
import { RedisLink } from '@sluice/redis';
import { keys, openRoom, stopServers, until, type Loose, type Room } from './harness.js';

after(stopServers);

async function store(room: Room, path: string, text: string, key?: string): Promise<Loose> {
  const response = await fetch(`${room.url}/v1/files/main/${path}`, {
    method: 'PUT',
    body: text,
    headers: key === undefined ? {} : { Authorization: `Bearer ${key}` },
  });
  assert.ok(response.ok, String(response.status));
  return response.json();
}

test('uploads under way are listed with what they have and what they miss, to their tenant', async (t) => {
  const room = await openRoom(t, { withKeys: true });
  const begin = async (path: string, key: string): Promise<string> => {
    const body = { drive: 'main', path, size: 3_000, chunkSize: 1_000 };
    return (await room.call('POST', '/v1/uploads', body, key)).body.id;
  };
  const [mine, foreign] = [await begin('a', keys.acme), await begin('b', keys.beta)];
  await fetch(`${room.url}/v1/uploads/${mine}/chunks/1`, {
    method: 'PUT',
    body: Buffer.alloc(1_000),
    headers: { Authorization: `Bearer ${keys.acme}` },
  });
  const own = (await room.call('GET', '/v1/uploads', undefined, keys.acme)).body;
  assert.deepEqual(
    own.items.map((upload: Loose) => upload.id),
    [mine],
  );
  const [upload] = own.items;
  assert.deepEqual(
    [upload.drive, upload.path, upload.size, upload.receivedBytes],
    ['main', 'a', 3_000, 1_000],
  );
  assert.deepEqual(upload.missing, [
    [0, 999],
    [2_000, 2_999],
  ]);
  const first = (await room.call('GET', '/v1/uploads?limit=1', undefined, keys.admin)).body;
  const next = encodeURIComponent(first.next);
  const second = (await room.call('GET', `/v1/uploads?limit=1&cursor=${next}`, undefined, keys.admin)).body;
  assert.deepEqual([first.items[0].id, second.items[0].id], [foreign, mine]);
  assert.equal((await room.call('GET', '/v1/uploads?cursor=x', undefined, keys.acme)).status, 400);
});

test('events are read from the newest, and followed from a cursor; a tenant gets its own', async (t) => {
  const room = await openRoom(t, { withKeys: true });
  for (const [path, key] of [
    ['a', keys.acme],
    ['b', keys.beta],
    ['c', keys.acme],
  ] as const)
    await store(room, path, path, key);
  const read = async (query: string, key: string) =>
    (await room.call('GET', `/v1/events?${query}`, undefined, key)).body;
  const mine = await until('they are published', async () => {
    const body = await read('topic=repository.documents.created', keys.acme);
    return body.items.length === 2 && body;
  });
  assert.deepEqual(
    mine.items.map((event: Loose) => event.data.path),
    ['c', 'a'],
  );
  const all = await read('topic=repository.documents.', keys.admin);
  assert.equal(all.items.length, 3);
  const after = await read(`after=${mine.items[1].cursor}&topic=repository.documents.`, keys.acme);
  assert.deepEqual(
    after.items.map((event: Loose) => event.data.path),
    ['c'],
  );
  const end = await read(`after=${after.next}`, keys.acme);
  assert.deepEqual([end.items, end.next], [[], after.next]);
  const outbox = await until('nothing waits', async () => {
    const { body } = await room.call('GET', '/v1/events/outbox', undefined, keys.admin);
    return body.waiting === 0 && body;
  });
  assert.equal(outbox.oldestMs, 0);
});

test('one id leads through upload, file, events and jobs, whichever of them it is', async (t) => {
  const room = await openRoom(t, { withKeys: true });
  const thumbnails = room.queue('thumbnails');
  const { body: begun } = await room.call(
    'POST',
    '/v1/uploads',
    { drive: 'main', path: 'p', size: 3 },
    keys.acme,
  );
  await fetch(`${room.url}/v1/uploads/${begun.id}/chunks/0`, {
    method: 'PUT',
    body: 'abc',
    headers: { Authorization: `Bearer ${keys.acme}` },
  });
  const { result, nodeId } = await until('it is completed', async () => {
    const { body } = await room.call('GET', `/v1/uploads/${begun.id}`, undefined, keys.acme);
    return body.state === 'COMPLETED' && body;
  });
  assert.equal(result.size, 3);
  const labels = { tenant: 'acme', node: nodeId };
  thumbnails.work((job) => {
    if (job.data === 'dies') throw new GiveUp('no picture');
    return { width: 1 };
  });
  await thumbnails.add('works', { id: `thumbnail:${nodeId}`, labels, keepResultMs: 60_000 });
  await thumbnails.add('dies', { id: 'of-node-too', labels: { ...labels } });
  await thumbnails.add({ nodeId }, { id: 'foreign', labels: { tenant: 'beta' }, delayMs: 3_600_000 });
  const trace = await until('everything is there', async () => {
    const { body } = await room.call('GET', `/v1/trace/${begun.id}`, undefined, keys.acme);
    const states = body.jobs
      ?.map((job: Loose) => job.state)
      .toSorted()
      .join();
    return (
      body.events?.some((event: Loose) => event.topic.endsWith('created')) && states === 'dead,done' && body
    );
  });
  assert.deepEqual([trace.kind, trace.node.id, trace.upload.record.id], ['upload', nodeId, begun.id]);
  assert.equal(trace.upload.record.status, 'COMPLETED');
  assert.equal(trace.node.objectKey, undefined);
  assert.ok(trace.bounds.events.complete && trace.bounds.jobs.complete);
  const done = trace.jobs.find((job: Loose) => job.id === `thumbnail:${nodeId}`);
  assert.deepEqual(done.result, { width: 1 });
  await room.records.verifications.take({ nodeId, resultId: 'r1', result: 'approved' });
  await room.records.verifications.take({ nodeId, result: 'rejected' });
  const verified = await until('the results are published', async () => {
    const { body } = await room.call('GET', `/v1/trace/${nodeId}`, undefined, keys.acme);
    const ids = body.events.map((event: Loose) => event.eventId);
    const found = ids.filter((id: string) => id.endsWith(':verified')) as string[];
    return found.length === 2 && found;
  });
  const all = [nodeId, trace.events[0].eventId, `thumbnail:${nodeId}`, ...verified];
  // A key of the installation finds it without being told whose it is.
  for (const key of [keys.acme, keys.admin]) {
    for (const id of [...all, begun.id]) {
      const { body } = await room.call('GET', `/v1/trace/${encodeURIComponent(id)}`, undefined, key);
      assert.deepEqual([body.node?.id, body.upload?.record?.id], [nodeId, begun.id], `${id} by ${key}`);
    }
  }
  for (const id of [...all, begun.id])
    assert.equal(
      (await room.call('GET', `/v1/trace/${encodeURIComponent(id)}`, undefined, keys.beta)).status,
      404,
    );
});

test('the cache is asked, explained and invalidated by family and key', async (t) => {
  const room = await openRoom(t);
  const { nodeId } = await store(room, 'a', 'text');
  const key = encodeURIComponent(JSON.stringify({ tenant: 'default', id: nodeId }));
  const entry = await room.call('GET', `/v1/cache/node/entry?key=${key}`);
  assert.equal(entry.body.value.path, 'a');
  const before = (await room.call('GET', `/v1/cache/node/explain?key=${key}`)).body;
  assert.deepEqual([before.state, before.because], ['fresh', 'It is in Redis and fresh.']);
  const answer = await room.call('POST', '/v1/cache/node/invalidate', {
    key: { tenant: 'default', id: nodeId },
  });
  assert.deepEqual(answer.body, { invalidated: 'applied' });
  assert.equal((await room.call('GET', `/v1/cache/node/explain?key=${key}`)).body.state, 'missing');
  await room.call('GET', `/v1/cache/node/entry?key=${key}`);
  await room.call('POST', '/v1/cache/node/invalidate', { group: ['node:tree', 'default'] });
  assert.notEqual((await room.call('GET', `/v1/cache/node/explain?key=${key}`)).body.state, 'fresh');
  assert.equal((await room.call('GET', '/v1/cache/node/explain?key=7')).status, 400);
  // What no database could look for is the asker's mistake, or is not there; it is no failure.
  for (const [family, wanted, status] of [
    ['drive:id', { tenant: 'default', id: '1' }, 200],
    ['drive', { tenant: 'default', name: '\0' }, 400],
    ['upload:ended', { tenant: '\0', id: '1' }, 400],
  ] as const) {
    const asked = encodeURIComponent(JSON.stringify(wanted));
    const { status: answered, body } = await room.call('GET', `/v1/cache/${family}/entry?key=${asked}`);
    assert.equal(answered, status, family);
    if (status === 200) assert.equal(body.value, null);
  }
  const families = await until('the families are published', async () => {
    const { body } = await room.call('GET', '/v1/cache');
    return body.families?.length > 0 && body.families;
  });
  assert.ok(families.some((family: Loose) => family.family === 'node'));
});

test('values of a family that only another process has opened are looked up, explained and invalidated', async (t) => {
  const room = await openRoom(t);
  const elsewhere = new Cache({ redis: room.redis.url, patienceMs: 10_000, publishMs: 100 });
  t.after(() => elsewhere.close());
  let loads = 0;
  const prices = elsewhere.open(
    defineCache({
      ...{ name: 'shop:price', key: (id: number) => [id, 'EUR'], ttlMs: 600_000 },
      ...{ groups: () => ['shop:prices'], load: async () => ({ amount: ++loads }) },
    }),
  );
  await prices.get(17);
  await until('it is published', async () => {
    const { body } = await room.call('GET', '/v1/cache');
    return body.families.some(({ family }: Loose) => family === 'shop:price');
  });
  const key = encodeURIComponent('[17,"EUR"]');
  const ask = (what: string) => room.call('GET', `/v1/cache/shop:price/${what}?key=${key}`);
  const invalidate = (body: object) => room.call('POST', '/v1/cache/shop:price/invalidate', body);
  assert.deepEqual((await ask('entry')).body, { value: { amount: 1 } });
  assert.equal((await ask('explain')).body.state, 'fresh');
  assert.deepEqual((await invalidate({ key: [17, 'EUR'] })).body, { invalidated: 'applied' });
  assert.equal((await ask('explain')).body.state, 'missing');
  const missing = await ask('entry');
  assert.deepEqual([missing.status, missing.body.error.code], [404, 'VALUE_NOT_FOUND']);
  await until('it is loaded anew', async () => (await prices.get(17)).amount === 2);
  assert.deepEqual((await invalidate({ group: 'shop:prices' })).body, { invalidated: 'applied' });
  assert.notEqual((await ask('explain')).body.state, 'fresh');
  const parts = await invalidate({ key: { id: 17 } });
  assert.deepEqual([parts.status, parts.body.error.code], [400, 'REQUEST_INVALID']);
  assert.match(parts.body.error.message, /Give the parts that follow its name/);
  const unknown = await room.call('GET', '/v1/cache/shop:prize/entry?key=17');
  assert.equal(unknown.status, 404);
  assert.match(unknown.body.error.message, /shop:price/);
});

test('the history of a family, and of all of them, is a series with a point for each step', async (t) => {
  const room = await openRoom(t);
  for (const [family, step, many] of [
    ['node', 'minute', 60],
    ['*', 'hour', 168],
    ['*', 'day', 90],
  ] as const) {
    const { status, body } = await room.call('GET', `/v1/cache/${family}/series?step=${step}`);
    assert.deepEqual([status, body.step, body.points.length], [200, step, many]);
  }
  assert.equal((await room.call('GET', '/v1/cache/node/series?step=year')).status, 400);
});

test('the overview says what needs attention, and is the same for all who ask at once', async (t) => {
  const room = await openRoom(t);
  const mail = room.queue('mail');
  await mail.add('waits for nobody');
  const overview = await until('it is noticed', async () => {
    const { body } = await room.call('GET', '/v1/overview');
    return body.attention?.some(({ code }: Loose) => code === 'NO_WORKERS') && body;
  });
  assert.ok(overview.redis.usedBytes > 0 && overview.queues.some((queue: Loose) => queue.name === 'mail'));
  assert.deepEqual([overview.dead.letters, overview.dead.topError, overview.uploads.open], [0, null, 0]);
  // Right behind a look, so that the next one is not due between two of those who ask.
  const { cost } = await until('another look', async () => {
    const { body } = await room.call('GET', '/v1/overview');
    return body.cost.looks > overview.cost.looks && body;
  });
  const answers = await Promise.all([1, 2, 3, 4].map(() => room.call('GET', '/v1/overview')));
  assert.deepEqual([...new Set(answers.map(({ body }) => body.cost.looks))], [cost.looks]);
});

interface Heard {
  event: string;
  id: string | undefined;
  data: Loose;
}

/** Reads server-sent events until it is aborted. */
function listen(t: Loose, url: string, headers: Record<string, string> = {}): Heard[] {
  const heard: Heard[] = [];
  const ending = new AbortController();
  t.after(() => ending.abort());
  void (async () => {
    const response = await fetch(url, { headers, signal: ending.signal });
    let text = '';
    for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
      text += piece;
      const messages = text.split('\n\n');
      text = messages.pop()!;
      for (const message of messages) {
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(message)?.[1];
        if (field('event'))
          heard.push({ event: field('event')!, id: field('id'), data: JSON.parse(field('data')!) });
      }
    }
  })().catch(() => {});
  return heard;
}

test('live updates bring the overview, uploads and events; whoever comes back gets what was missed', async (t) => {
  const room = await openRoom(t);
  const heard = listen(t, `${room.url}/v1/live?topics=overview,uploads,events`);
  await until('the overview comes', async () => heard.some(({ event }) => event === 'overview'));
  await store(room, 'one', '1');
  const first = await until('its event comes', async () =>
    heard.find(({ event, data }) => event === 'events' && data.topic === 'repository.documents.created'),
  );
  assert.equal(first.data.data.path, 'one');
  await store(room, 'two', '2');
  await until('the second comes', async () => heard.some(({ data }) => data.data?.path === 'two'));
  const again = listen(t, `${room.url}/v1/live?topics=events`, { 'Last-Event-ID': first.id! });
  await until('the second comes again', async () => again.some(({ data }) => data.data?.path === 'two'));
  assert.ok(!again.some(({ data }) => data.data?.path === 'one'));
  await store(room, 'three', '3');
  await until('and what is new', async () => again.some(({ data }) => data.data?.path === 'three'));
  const cursors = again.map(({ id }) => id);
  assert.equal(new Set(cursors).size, cursors.length, 'each comes once');
  await room.call('POST', '/v1/uploads', { drive: 'main', path: 'open', size: 10 });
  await until('the upload is seen', async () =>
    heard.some(
      ({ event, data }) => event === 'uploads' && data.items.some(({ path }: Loose) => path === 'open'),
    ),
  );
});

test('a tenant hears of its own uploads and events only', async (t) => {
  const room = await openRoom(t, { withKeys: true });
  const heard = listen(t, `${room.url}/v1/live`, { Authorization: `Bearer ${keys.acme}` });
  await until('the stream is open', async () => heard.some(({ event }) => event === 'uploads'));
  await room.call('POST', '/v1/uploads', { drive: 'main', path: 'theirs', size: 10 }, keys.beta);
  await store(room, 'foreign', 'x', keys.beta);
  await store(room, 'own', 'x', keys.acme);
  await until('its own comes', async () => heard.some(({ data }) => data.data?.path === 'own'));
  assert.ok(!JSON.stringify(heard).includes('foreign') && !JSON.stringify(heard).includes('theirs'));
});

test('a viewer that is cut off before its first event comes back and has missed nothing', async (t) => {
  const room = await openRoom(t);
  const begun = new AbortController();
  const response = await fetch(`${room.url}/v1/live?topics=events`, { signal: begun.signal });
  const reader = response.body!.getReader();
  const head = new TextDecoder().decode((await reader.read()).value);
  const place = /^id: (\d+-\d+)$/m.exec(head)?.[1];
  assert.ok(place !== undefined, head);
  begun.abort();
  await store(room, 'meanwhile', 'x');
  const heard = listen(t, `${room.url}/v1/live?topics=events`, { 'Last-Event-ID': place });
  await until('it comes', async () => heard.some(({ data }) => data.data?.path === 'meanwhile'));
});

test('whoever missed too much is told where the gap is, and hears what is new', async (t) => {
  const room = await openRoom(t);
  const link = new RedisLink(room.redis.url);
  t.after(() => link.close());
  const sink = new RedisStreamSink({ redis: link });
  const many = Array.from({ length: 6_000 }, (_, n) => ({
    eventId: `e${n}`,
    topic: 't',
    key: 'k',
    value: '{}',
  }));
  await sink.publish(many);
  const late = listen(t, `${room.url}/v1/live?topics=events`, { 'Last-Event-ID': '0-1' });
  const gap = await until('the gap is told', async () => late.find(({ event }) => event === 'gap'));
  assert.ok(gap.data.before > gap.data.after);
  await store(room, 'afterwards', 'x');
  await until('what is new comes', async () => late.some(({ data }) => data.data?.path === 'afterwards'));
});
