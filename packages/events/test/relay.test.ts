/** The relay under everything that may happen to it: nothing lost, order kept, one at a time. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { isSluiceError, type Logger } from '@sluice/base';
import { openRecords, type NodeRecord, type Records } from '@sluice/records';
import { RedisLink } from '@sluice/redis';
import {
  spawnOwned,
  startPostgres,
  startProxy,
  startRedis,
  waitUntil,
  type PostgresServer,
  type RedisServer,
} from '@sluice/testbed';
import {
  readEvents,
  readNewest,
  RedisStreamSink,
  Relay,
  type EventSink,
  type SinkEvent,
  type StreamEvent,
} from '../src/index.js';
import { assertComplete, fillOutbox } from './waitingEvents.js';

const PROCESS = fileURLToPath(new URL('./relayProcess.js', import.meta.url));
const DRAIN_MS = 60_000;

let postgres: PostgresServer;
let redis: RedisServer;
before(async () => {
  [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
});
after(() => Promise.all([postgres.stop(), redis.stop()]));

async function newRecords(t: TestContext): Promise<{ records: Records; url: string }> {
  const url = await postgres.createDatabase();
  const records = await openRecords({ url, poolSize: 4 });
  t.after(() => records.close());
  return { records, url };
}

function newLink(t: TestContext, url = redis.url): RedisLink {
  const link = new RedisLink(url);
  t.after(() => link.close());
  return link;
}

/** Keeps everything it is given; `broken` makes it refuse. */
class ListSink implements EventSink {
  readonly events: SinkEvent[] = [];
  broken = false;
  refused = 0;
  slowMs = 0;

  async publish(events: readonly SinkEvent[]): Promise<void> {
    if (this.slowMs > 0) await sleep(this.slowMs);
    if (this.broken) {
      this.refused += 1;
      throw new Error('the sink is down');
    }
    this.events.push(...events);
  }
}

async function everything(link: RedisLink, prefix: string): Promise<StreamEvent[]> {
  const all = [];
  for (let after = '0'; ;) {
    const events = await readEvents({ redis: link, prefix, after, limit: 1_000 });
    if (events.length === 0) return all;
    all.push(...events);
    after = events.at(-1)!.cursor;
  }
}

async function drained(records: Records): Promise<void> {
  await waitUntil('the outbox is empty', async () => (await records.outbox.state()).waiting === 0, {
    timeoutMs: DRAIN_MS,
  });
}

test('what happens to a file arrives in the stream at once and in order', async (t) => {
  const { records } = await newRecords(t);
  const link = newLink(t);
  const relay = new Relay({ records, sink: new RedisStreamSink({ redis: link, prefix: 'file' }) });
  await relay.start();
  t.after(() => relay.stop());
  await waitUntil('it leads', () => relay.leading);
  await records.drives.create({ tenant: 't', name: 'd', bucket: 'b' });
  await drained(records);
  const files: NodeRecord[] = [];
  const tookMs: number[] = [];
  for (const path of ['b.txt', 'c.txt', 'ä/ö.txt']) {
    const { cursor: after } = (await everything(link, 'file')).at(-1)!;
    const waiting = readEvents({ redis: newLink(t), prefix: 'file', after, blockMs: 5_000 });
    const began = performance.now();
    const request = {
      id: path,
      tenant: 't',
      drive: 'd',
      path,
      objectKey: path,
      ifExists: 'replace',
    } as const;
    const object = { size: 3, etag: 'e', contentType: 'text/plain' };
    const { node } = await records.uploads.storeWhole({ ...request, ...object });
    await waiting;
    tookMs.push(performance.now() - began);
    await drained(records);
    files.push(node!);
  }
  // A busy machine may be slow once or twice.
  assert.ok(Math.min(...tookMs) < 1_500, `wake-ups, not the watchdog: ${tookMs.join(', ')} ms`);
  const node = files.at(-1)!;
  await records.nodes.delete({ tenant: 't', id: node.id });
  await drained(records);
  const all = await everything(link, 'file');
  const stored = [
    'repository.uploads.initiated',
    'repository.uploads.completed',
    'repository.documents.created',
  ];
  assert.deepEqual(
    all.map(({ topic }) => topic),
    [
      'repository.drives.created',
      ...stored,
      ...stored,
      'repository.folders.changed',
      ...stored,
      'repository.documents.deleted',
    ],
  );
  const events = all.slice(-4);
  assert.ok(events.every(({ key }) => key === node.id));
  const created = JSON.parse(events[2]!.value) as Record<string, unknown>;
  assert.deepEqual([created['path'], created['eventId']], ['ä/ö.txt', events[2]!.eventId]);
  // It counts what it has removed, a moment after that can be seen.
  await waitUntil('it has counted them', () => relay.published >= all.length);
  assert.equal(relay.published, all.length);
});

test('with the sink down 10,000 events wait; once it is back all arrive in order', async (t) => {
  const { records, url } = await newRecords(t);
  await fillOutbox(postgres, url, 10_000);
  const said: string[] = [];
  const say = (level: string) => (_fields: object, message: string) => void said.push(`${level}: ${message}`);
  const logger: Logger = { debug: () => {}, info: say('info'), warn: say('warn'), error: say('error') };
  const sink = new ListSink();
  sink.broken = true;
  const relay = new Relay({ records, sink, logger });
  await relay.start();
  t.after(() => relay.stop());
  await waitUntil('it has tried some times', () => sink.refused >= 4);
  assert.equal(relay.inTrouble, true);
  const state = await relay.state();
  assert.equal(state.waiting, 10_000);
  assert.ok(state.oldestMs > 0);
  sink.broken = false;
  await drained(records);
  assertComplete(sink.events, 10_000);
  assert.equal(sink.events.length, 10_000);
  await waitUntil('it says so', () => !relay.inTrouble);
  assert.deepEqual(said, [
    'warn: the event relay waits: events are kept until the sink takes them',
    'info: the event relay goes on',
  ]);
});

test('a relay killed with kill -9 while it publishes loses nothing, and the next one goes on in order', async (t) => {
  const { records, url } = await newRecords(t);
  const own = await startRedis();
  t.after(() => own.stop());
  const link = newLink(t, own.url);
  await fillOutbox(postgres, url, 10_000);
  for (let kills = 1; kills <= 3; kills++) {
    const child = spawnOwned(process.execPath, [PROCESS, url, own.url], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    t.after(() => child.kill('SIGKILL'));
    const before = (await records.outbox.state()).waiting;
    await waitUntil('it is in the middle', async () => (await records.outbox.state()).waiting < before, {
      timeoutMs: DRAIN_MS,
      everyMs: 5,
    });
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }
  assert.ok((await records.outbox.state()).waiting > 0, 'it was killed before it was done');
  const relay = new Relay({ records, sink: new RedisStreamSink({ redis: link }) });
  await relay.start();
  t.after(() => relay.stop());
  await drained(records);
  const events = await everything(link, 'sluice');
  assertComplete(events, 10_000);
  assert.equal(events.length, 10_000, 'the stream recognised what came twice');
});

test('of two relays one publishes, and the other takes over when it ends', async (t) => {
  const { records, url } = await newRecords(t);
  const sinks = [new ListSink(), new ListSink()];
  const relays = sinks.map((sink) => new Relay({ records, sink, batch: 50 }));
  for (const relay of relays) t.after(() => relay.stop());
  await relays[0]!.start();
  await waitUntil('the first leads', () => relays[0]!.leading);
  await relays[1]!.start();
  await fillOutbox(postgres, url, 1_000);
  await drained(records);
  assert.deepEqual([relays[0]!.leading, relays[1]!.leading], [true, false]);
  assert.deepEqual([sinks[0]!.events.length, sinks[1]!.events.length], [1_000, 0]);
  await relays[0]!.stop();
  await fillOutbox(postgres, url, 1_000);
  await drained(records);
  assert.equal(sinks[1]!.events.length, 1_000);
});

test('a reply of Redis that was lost makes no second entry', async (t) => {
  const { records, url } = await newRecords(t);
  const proxy = await startProxy(redis.port);
  t.after(() => proxy.stop());
  const sink = new RedisStreamSink({ redis: newLink(t, proxy.url), prefix: 'lost-reply' });
  await fillOutbox(postgres, url, 300);
  const lost = proxy.loseReplies({ when: (request) => request.includes('event-') });
  const relay = new Relay({ records, sink, batch: 100 });
  await relay.start();
  t.after(() => relay.stop());
  await lost;
  await drained(records);
  const events = await everything(newLink(t), 'lost-reply');
  assertComplete(events, 300);
  assert.equal(events.length, 300);
});

test('PostgreSQL restarted in the middle is waited out, and everything arrives in order', async (t) => {
  const own = await startPostgres();
  t.after(() => own.stop());
  const url = await own.createDatabase();
  const records = await openRecords({ url, poolSize: 4 });
  t.after(() => records.close());
  await fillOutbox(own, url, 5_000);
  const sink = new ListSink();
  // Too slow to be done before the restart, however long that takes to begin.
  sink.slowMs = 50;
  const relay = new Relay({ records, sink, batch: 20 });
  await relay.start();
  t.after(() => relay.stop());
  await waitUntil('it is in the middle', () => relay.published > 200, { timeoutMs: DRAIN_MS });
  await own.restart();
  assert.ok(relay.published < 5_000, 'it was interrupted');
  sink.slowMs = 0;
  await drained(records);
  assertComplete(sink.events, 5_000);
});

test('a connection to PostgreSQL that swallows everything is given up soon, whatever the deadline of others', async (t) => {
  const { records, url } = await newRecords(t);
  const proxy = await startProxy(postgres.port);
  t.after(() => proxy.stop());
  const patient = await openRecords({
    url: url.replace(`:${postgres.port}`, `:${proxy.port}`),
    deadlineMs: 120_000,
  });
  t.after(() => patient.close());
  const sink = new ListSink();
  const relay = new Relay({ records: patient, sink });
  await relay.start();
  t.after(() => relay.stop());
  await waitUntil('it leads', () => relay.leading);
  proxy.blackHole(true);
  await fillOutbox(postgres, url, 100);
  // It asks now and then, and then waits for an answer that does not come.
  await waitUntil('it has noticed', () => relay.inTrouble, { timeoutMs: 30_000 });
  proxy.blackHole(false);
  proxy.cut();
  await drained(records);
  assertComplete(sink.events, 100);
});

test('start and stop may be repeated, and a sink that hangs does not hold up a stop', async (t) => {
  const { records, url } = await newRecords(t);
  const list = new ListSink();
  const relay = new Relay({ records, sink: list });
  await Promise.all([relay.start(), relay.start()]);
  await fillOutbox(postgres, url, 10);
  await drained(records);
  await Promise.all([relay.stop(), relay.stop()]);
  await relay.start();
  await relay.stop();
  assert.equal(relay.leading, false);
  const hanging = new Relay({ records, sink: { publish: () => new Promise(() => {}) } });
  await fillOutbox(postgres, url, 10);
  await hanging.start();
  await waitUntil('it leads', () => hanging.leading);
  const began = performance.now();
  await hanging.stop(1_000).catch((error: unknown) => assert.ok(isSluiceError(error, 'STOP_TIMEOUT')));
  assert.ok(performance.now() - began < 5_000);
  const next = new Relay({ records, sink: list });
  await next.start();
  t.after(() => next.stop());
  await drained(records);
  assert.equal(list.events.length, 20);
});

test('the stream keeps about as many events as it is told, and is read from any position', async (t) => {
  const link = newLink(t);
  const sink = new RedisStreamSink({ redis: link, prefix: 'short', keep: 100 });
  const events = Array.from({ length: 1_200 }, (_, i) => ({
    eventId: `e${i}`,
    topic: 't',
    key: 'k',
    value: `{"i":${i}}`,
  }));
  await sink.publish(events);
  await sink.publish(events.slice(-50));
  const kept = await everything(link, 'short');
  assert.ok(kept.length >= 100 && kept.length < 400, `${kept.length} are kept`);
  assert.equal(kept.at(-1)!.eventId, 'e1199');
  const cursor = (await readEvents({ redis: link, prefix: 'short', limit: 1 }))[0]!.cursor;
  const rest = await readEvents({ redis: link, prefix: 'short', after: cursor, limit: 10_000 });
  assert.equal(rest.length, kept.length - 1);
  const newest = await readNewest({ redis: link, prefix: 'short', limit: 2 });
  const before = await readNewest({ redis: link, prefix: 'short', limit: 1, before: newest[1]!.cursor });
  assert.deepEqual(
    [...newest, ...before].map(({ eventId }) => eventId),
    ['e1199', 'e1198', 'e1197'],
  );
  assert.deepEqual(await readEvents({ redis: newLink(t), prefix: 'nothing', blockMs: 50 }), []);
});
