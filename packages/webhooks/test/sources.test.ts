// Where events come from: the outbox of the records, and the event streams of queues. Nothing that happened is forgotten on the way.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import { Relay, type EventSink } from '@sluice/events';
import { GiveUp, Queue, readRules } from '@sluice/queue';
import { RedisLink } from '@sluice/redis';
import { FanOut, JobFollower } from '../src/index.js';
import { streamLength } from '../src/jobFollower.js';
import { startReceiver, type Receiver } from './receiver.js';
import { eventually, useServers, type Opened } from './setup.js';

const bed = useServers();

interface Told {
  id: string;
  topic: string;
  tenant?: string;
  data: { jobId?: string; error?: { message: string }; attempt?: number; nodeId?: string };
}

const toldTo = (receiver: Receiver) => receiver.got.map(({ body }) => JSON.parse(body) as Told);

test('an upload is told of although the stream, the relay and the webhooks fail on the way', async (t) => {
  const { webhooks, records } = await bed.open(t);
  const receiver = await startReceiver(t);
  await webhooks.create({ tenant: 'acme', url: receiver.url, topics: ['repository.documents.*'] });
  await records.drives.create({ tenant: 'acme', name: 'main', bucket: 'b' });
  let failures = 0;
  const stream: EventSink = {
    publish: async () => {
      if (++failures <= 2) throw new Error('the stream is away');
    },
  };
  const flaky = {
    publish: async (...args: Parameters<typeof webhooks.publish>) => {
      const published = await webhooks.publish(...args);
      if (failures === 3) throw new Error('the answer was lost');
      return published;
    },
  };
  const relay = new Relay({ records, sink: new FanOut(flaky, stream) });
  await relay.start();
  t.after(() => relay.stop());
  const id = randomUUID();
  const object = { size: 1, etag: 'e', contentType: 'text/plain', ifExists: 'replace' as const };
  const { node } = await records.uploads.storeWhole({
    ...{ id, tenant: 'acme', drive: 'main', path: 'a', objectKey: id },
    ...object,
  });
  await eventually('the outbox is empty', async () => (await records.outbox.state()).waiting === 0);
  assert.ok(failures >= 4);
  await eventually('it was delivered', () => receiver.got.length === 1);
  const [told] = toldTo(receiver);
  assert.deepEqual(
    [told!.topic, told!.tenant, told!.data.nodeId],
    ['repository.documents.created', 'acme', node!.id],
  );
});

function followed(t: TestContext, { webhooks, prefix }: Opened, queue: Queue): JobFollower {
  const redis = new RedisLink(bed.redis.url);
  const follower = new JobFollower({ webhooks, redis, prefix, queues: () => [queue, webhooks.queue] });
  t.after(async () => {
    await follower.stop();
    redis.close();
  });
  return follower;
}

function newQueue(t: TestContext, prefix: string, partitions = 1): Queue {
  const queue = new Queue(`q-${randomUUID()}`, {
    ...{ redis: bed.redis.url, prefix, partitions, attempts: 2 },
    backoff: { type: 'fixed', delayMs: 10 },
  });
  t.after(() => queue.close(500));
  return queue;
}

test('jobs that are done, fail and die are told of, to their tenant and to the installation', async (t) => {
  const opened = await bed.open(t);
  const { webhooks, prefix } = opened;
  const [acme, all] = await Promise.all([startReceiver(t), startReceiver(t)]);
  await webhooks.create({ tenant: 'acme', url: acme.url, topics: ['jobs.dead', 'jobs.failed'] });
  await webhooks.create({ tenant: '*', url: all.url, topics: ['jobs.*'] });
  const queue = newQueue(t, prefix, 2);
  const follower = followed(t, opened, queue);
  await follower.step();
  await queue
    .work((job) => {
      if (job.data === 'bad') throw new Error('it is broken');
      if (job.data === 'hopeless') throw new GiveUp('no use');
    })
    .start();
  const bad = await queue.add('bad', { labels: { tenant: 'acme' } });
  const hopeless = await queue.add('hopeless', { labels: { tenant: 'beta' } });
  const good = await queue.add('good', { labels: { tenant: 'acme' } });
  await follower.start();
  const topics = (receiver: Receiver, id: string) =>
    toldTo(receiver)
      .filter(({ data }) => data.jobId === id)
      .map(({ topic }) => topic)
      .sort();
  await eventually('all was told', () => all.got.length >= 4 && acme.got.length >= 2);
  assert.deepEqual(topics(all, bad.id), ['jobs.dead', 'jobs.failed']);
  assert.deepEqual(topics(all, hopeless.id), ['jobs.dead']);
  assert.deepEqual(topics(all, good.id), ['jobs.done']);
  assert.deepEqual(topics(acme, bad.id), ['jobs.dead', 'jobs.failed']);
  assert.deepEqual([acme.got.length, topics(acme, hopeless.id)], [2, []]);
  const death = toldTo(acme).find(({ topic }) => topic === 'jobs.dead')!;
  assert.deepEqual(
    [death.tenant, death.data.attempt, death.data.error!.message],
    ['acme', 2, 'it is broken'],
  );
  assert.ok(!acme.got.some(({ body }) => body.includes('stack')));
});

test('followers that see an event twice, and deliveries of webhooks, are told of once and never', async (t) => {
  const opened = await bed.open(t);
  const { webhooks, prefix } = opened;
  const receiver = await startReceiver(t);
  await webhooks.create({ tenant: '*', url: receiver.url, topics: ['*'] });
  const queue = newQueue(t, prefix);
  const [one, other] = [followed(t, opened, queue), followed(t, opened, queue)];
  await one.step();
  await queue.work(() => Promise.reject(new GiveUp('no use'))).start();
  await queue.addMany(Array.from({ length: 20 }, (_, data) => ({ data })));
  await eventually('all died', async () => (await queue.dead.count()) === 20);
  const redis = new RedisLink(bed.redis.url);
  const key = `${prefix}:{webhooks}:jobs:${queue.name}`;
  const before = (await redis.call('GET', [key])) as Buffer;
  await Promise.all([one.step(), other.step()]);
  // As if the place had not been written down before a crash.
  await redis.call('SET', [key, before]);
  await one.step();
  await eventually('all were delivered', () => receiver.got.length >= 20);
  await one.step();
  await eventually('nothing is under way', async () => {
    const { waiting, active, delayed } = await webhooks.queue.counts();
    return waiting + active + delayed === 0;
  });
  assert.equal(receiver.got.length, 20);
  redis.close();
});

test('deaths that the stream has dropped are found among the dead letters, each once', async (t) => {
  const opened = await bed.open(t);
  const { webhooks, prefix } = opened;
  const receiver = await startReceiver(t);
  await webhooks.create({ tenant: '*', url: receiver.url, topics: ['jobs.dead'] });
  const queue = newQueue(t, prefix);
  const follower = followed(t, opened, queue);
  await follower.step();
  await queue.work(() => Promise.reject(new GiveUp('no use'))).start();
  await queue.add('first');
  await eventually('it died', async () => (await queue.dead.count()) === 1);
  await follower.step();
  await queue.addMany(Array.from({ length: 10 }, (_, data) => ({ data })));
  await eventually('all died', async () => (await queue.dead.count()) === 11);
  const redis = new RedisLink(bed.redis.url);
  await redis.call('XTRIM', [`${prefix}:{${queue.name}:0}:events`, 'MAXLEN', 3]);
  await follower.step();
  await follower.step();
  await eventually('all were told', () => receiver.got.length >= 11);
  await eventually('nothing is under way', async () => (await webhooks.queue.counts()).active === 0);
  assert.equal(new Set(toldTo(receiver).map(({ data }) => data.jobId)).size, 11);
  assert.equal(receiver.got.length, 11);
  redis.close();
});

test('while nobody wants events of jobs no stream is written, and afterwards it begins with the present', async (t) => {
  const opened = await bed.open(t);
  const { webhooks, prefix } = opened;
  const receiver = await startReceiver(t);
  await webhooks.create({ tenant: '*', url: receiver.url, topics: ['repository.*'] });
  const queue = newQueue(t, prefix);
  const follower = followed(t, opened, queue);
  await follower.step();
  await queue.work(() => {}).start();
  const redis = new RedisLink(bed.redis.url);
  const add = async (id: string) => {
    await queue.add(id, { id });
    await queue.result(id);
  };
  await add('before');
  assert.equal(Number(await redis.call('EXISTS', [`${prefix}:{${queue.name}:0}:events`])), 0);
  const { id } = await webhooks.create({ tenant: '*', url: receiver.url, topics: ['jobs.done'] });
  await follower.step();
  await add('meanwhile');
  await follower.step();
  await eventually('it was told', () => receiver.got.length === 1);
  assert.equal((await readRules(queue)).events, streamLength);
  await webhooks.update('*', id, { active: false });
  await follower.step();
  assert.equal((await readRules(queue)).events ?? null, null, 'what was switched on for it is off again');
  await add('unwanted');
  await webhooks.update('*', id, { active: true });
  await follower.step();
  await add('again');
  await follower.step();
  await eventually('it was told', () => receiver.got.length === 2);
  assert.deepEqual(
    toldTo(receiver).map(({ data }) => data.jobId),
    ['meanwhile', 'again'],
  );
  redis.close();
});

test('a stream of events that somebody else has switched on stays on when the last webhook for jobs goes', async (t) => {
  const opened = await bed.open(t);
  const { webhooks, prefix } = opened;
  const receiver = await startReceiver(t);
  const queue = newQueue(t, prefix);
  await queue.limit({ events: streamLength });
  const { id } = await webhooks.create({ tenant: '*', url: receiver.url, topics: ['jobs.done'] });
  const follower = followed(t, opened, queue);
  await follower.step();
  await follower.step();
  await webhooks.delete('*', id);
  await follower.step();
  assert.equal((await readRules(queue)).events, streamLength);
});
