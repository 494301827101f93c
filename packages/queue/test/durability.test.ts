// Durable adds: resolved only when copies exist, and honest when they do not.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isSluiceError } from '@sluice/base';
import type { SluiceError } from '@sluice/base';
import { startCluster, startProxy, startRedis, waitUntil, type RedisServer } from '@sluice/testbed';
import { closeDurability, confirmCopies, withOwnId } from '../src/durability.js';
import { Queue } from '../src/queue.js';
import type { QueueOptions } from '../src/queue.js';

let master: RedisServer;
let replica: RedisServer;
let tests = 0;

before(async () => {
  master = await startRedis();
  replica = await startReplica();
});
after(() => Promise.all([master.stop(), replica.stop()]));

async function startReplica(): Promise<RedisServer> {
  const server = await startRedis({ config: { replicaof: `${master.host} ${master.port}` } });
  await waitUntil('the replica follows', async () => {
    return (await server.info('replication'))['master_link_status'] === 'up';
  });
  return server;
}

async function withQueue(
  use: (queue: Queue) => Promise<void>,
  options: Partial<QueueOptions<unknown>> = {},
): Promise<void> {
  const queue = new Queue('jobs', { redis: master.url, prefix: `durable${++tests}`, ...options });
  try {
    await use(queue);
  } finally {
    closeDurability(queue);
    await queue.close();
  }
}

function isShortfall(error: unknown, reached: number): error is SluiceError {
  return isSluiceError(error, 'DURABILITY_UNKNOWN') && error.details?.['reached'] === reached;
}

/** How often a server was asked to wait for copies. */
async function waitsOf(server: RedisServer): Promise<number> {
  const { cmdstat_wait = '' } = await server.info('commandstats');
  return Number(/calls=(\d+)/.exec(cmdstat_wait)?.[1] ?? 0);
}

test('an add that waits for a replica resolves when the replica has the job', async () => {
  await withQueue(async (queue) => {
    const added = await queue.add('kept', { durability: { replicas: 1 } });
    const { jobs } = queue.partitions[0]!.keys;
    assert.equal(await replica.command('HEXISTS', jobs, added.id), 1);
    assert.equal(added.duplicate, false);
    assert.equal((await queue.job(added.id))?.data, 'kept');
  });
});

test('more copies than there are replicas is DURABILITY_UNKNOWN with the id, and the job is there', async () => {
  await withQueue(async (queue) => {
    const durability = { replicas: 2, timeoutMs: 1_000 };
    const error = await queue.add('x', { id: 'mine', durability }).catch((error: unknown) => error);
    assert.ok(isShortfall(error, 1));
    assert.equal(error.details?.['id'], 'mine');
    assert.equal((await queue.job('mine'))?.state, 'waiting');
    // Repeating it is safe, and asks again.
    const again = await queue.add('x', { id: 'mine', durability: { replicas: 1 } });
    assert.deepEqual(again, { queue: 'jobs', id: 'mine', duplicate: true });
    assert.equal((await queue.counts()).waiting, 1);
  });
});

test('a generated id becomes an own one, so that the add can be repeated with it', async () => {
  await withQueue(async (queue) => {
    const error = await queue
      .add('x', { durability: { replicas: 9, timeoutMs: 1_000 } })
      .catch((e: unknown) => e);
    assert.ok(isShortfall(error, 1));
    const id = String(error.details?.['id']);
    const again = await queue.add('x', { id, durability: {} });
    assert.deepEqual(again, { queue: 'jobs', id, duplicate: true });
  });
});

test('durable adds that come together share their waits', async () => {
  await withQueue(async (queue) => {
    const asked = { replicas: 5, timeoutMs: 1_000 };
    const before = await waitsOf(master);
    const errors = await Promise.all(
      Array.from({ length: 200 }, (_, i) =>
        queue.add(i, { durability: asked }).catch((error: unknown) => error),
      ),
    );
    assert.ok(errors.every((error) => isShortfall(error, 1)));
    const waits = (await waitsOf(master)) - before;
    assert.ok(waits > 0 && waits < 20, `two hundred adds took ${waits} waits`);
    const added = await Promise.all(Array.from({ length: 200 }, (_, i) => queue.add(i, { durability: {} })));
    assert.equal(new Set(added.map(({ id }) => id)).size, 200);
    assert.equal((await queue.counts()).waiting, 400);
  });
});

test('a queue with several partitions confirms in each of them', async () => {
  await withQueue(
    async (queue) => {
      await Promise.all(Array.from({ length: 30 }, (_, i) => queue.add(i, { durability: { replicas: 1 } })));
      const waiting = (await queue.counts()).waiting;
      assert.equal(waiting, 30);
      for (const { keys } of queue.partitions)
        assert.ok(Number(await replica.command('HLEN', keys.jobs)) > 0);
    },
    { partitions: 3 },
  );
});

test('a durability that makes no sense is refused before anything is added', async () => {
  await withQueue(async (queue) => {
    for (const durability of [
      { replicas: 0 },
      { replicas: 1.5 },
      { timeoutMs: 0 },
      { fsync: true, replicas: -1 },
    ]) {
      await assert.rejects(queue.add(1, { durability }), (error) => isSluiceError(error, 'OPTION_INVALID'));
    }
    assert.equal((await queue.counts()).waiting, 0);
  });
});

test('fsync is confirmed where the server can, and refused before the add where it cannot', async () => {
  const known = await master.command('COMMAND', 'INFO', 'WAITAOF');
  const supported = Array.isArray(known) && known[0] !== null;
  await withQueue(async (queue) => {
    const adding = queue.add(1, { durability: { fsync: true, timeoutMs: 5_000 } });
    if (supported) await adding;
    else await assert.rejects(adding, (error) => isSluiceError(error, 'DURABILITY_UNSUPPORTED'));
    assert.equal((await queue.counts()).waiting, supported ? 1 : 0);
  });
});

test('when the connection is lost between the add and the wait, the add is repeated on the new one', async () => {
  const proxy = await startProxy(master.port);
  await withQueue(
    async (queue) => {
      await queue.ready();
      // The first WAIT is carried out, but its answer never comes.
      const lost = proxy.loseReplies({ when: (request) => /WAIT/i.test(request.toString()), count: 1 });
      const added = await queue.add('x', { durability: { replicas: 1, timeoutMs: 5_000 } });
      await lost;
      assert.equal(added.duplicate, false);
      assert.equal((await queue.counts()).waiting, 1);
      const { jobs } = queue.partitions[0]!.keys;
      assert.equal(await replica.command('HEXISTS', jobs, added.id), 1);
    },
    { redis: `redis://127.0.0.1:${proxy.port}` },
  );
  await proxy.stop();
});

test('an own id keeps what its options said, and a short memory becomes longer when asked for', async () => {
  await withQueue(async (queue) => {
    const plain = withOwnId(await queue.prepare(1));
    assert.deepEqual([plain.options.ownId, plain.options.plain], [plain.id, false]);
    assert.deepEqual(JSON.parse(plain.options.json), { w: 3_600_000 });
    const own = await queue.prepare(1, { id: 'own', rememberMs: 5, group: 'g', attempts: 4 });
    assert.equal(withOwnId(own), own);
    assert.deepEqual(JSON.parse(withOwnId(own, 600_000).options.json), { w: 600_000, g: 'g', a: 4 });
  });
});

test('with the replica frozen or gone, a durable add says that it does not know', async () => {
  await withQueue(async (queue) => {
    const durability = { replicas: 1, timeoutMs: 100 };
    replica.pause();
    await assert.rejects(queue.add('frozen', { id: 'frozen', durability }), (error) => isShortfall(error, 0));
    replica.resume();
    await queue.add('frozen', { id: 'frozen', durability: { replicas: 1, timeoutMs: 5_000 } });
    await replica.stop();
    await assert.rejects(queue.add('gone', { id: 'gone', durability }), (error) => isShortfall(error, 0));
    assert.equal((await queue.counts()).waiting, 2);
    replica = await startReplica();
    const again = await queue.add('gone', { id: 'gone', durability: { replicas: 1, timeoutMs: 5_000 } });
    assert.equal(again.duplicate, true);
    assert.equal(await replica.command('HLEN', queue.partitions[0]!.keys.jobs), 2);
  });
});

test('a repetition that finds its first answer is confirmed only when the replica has caught up', async () => {
  await withQueue(async (queue) => {
    const { id } = await queue.add('first');
    const requestId = `${queue.producerFor(queue.partitions[0]!).id}.0.1.0`;
    replica.pause();
    await queue.add('what the replica has not heard of');
    const again = { id, requestId, durability: { replicas: 1, timeoutMs: 100 } };
    await assert.rejects(queue.add('first', again), (error) => isShortfall(error, 0));
    replica.resume();
    await queue.add('first', { ...again, durability: { replicas: 1, timeoutMs: 5_000 } });
    assert.equal((await queue.counts()).waiting, 2);
  });
});

test('when a master is lost with what its replica had not heard, confirmed jobs survive and only unconfirmed ones go', async (t) => {
  const doomed = await startRedis();
  const heir = await startRedis({ config: { replicaof: `${doomed.host} ${doomed.port}` } });
  t.after(() => Promise.all([doomed.stop(), heir.stop()]));
  await waitUntil('the heir follows', async () => {
    return (await heir.info('replication'))['master_link_status'] === 'up';
  });
  const queue = new Queue<number | string>('jobs', { redis: doomed.url });
  const confirmed = await Promise.all(
    Array.from({ length: 50 }, (_, i) => queue.add(i, { durability: { replicas: 1, timeoutMs: 5_000 } })),
  );
  heir.pause();
  // More than what is under way between the two can hold.
  const large = 'x'.repeat(600_000);
  const unconfirmed = await queue.addMany(Array.from({ length: 50 }, () => ({ data: large })));
  await doomed.kill9();
  heir.resume();
  await heir.command('REPLICAOF', 'NO', 'ONE');
  await queue.close();
  const survivor = new Queue<number>('jobs', { redis: heir.url });
  t.after(() => survivor.close());
  for (const { id } of confirmed) assert.ok(await survivor.job(id), `${id} was confirmed`);
  const left = (await Promise.all(unconfirmed.map(({ id }) => survivor.job(id)))).filter(Boolean).length;
  t.diagnostic(`of 50 unconfirmed jobs ${left} are left`);
  assert.ok(left < 50);
  assert.equal((await survivor.counts()).waiting, 50 + left);
});

test('on a cluster the node that owns the partition is asked, also after its slot has moved', async () => {
  const cluster = await startCluster({ masters: 3, replicasPer: 1 });
  try {
    await withQueue(
      async (queue) => {
        const durability = { replicas: 1, timeoutMs: 5_000 };
        const addTen = () => Promise.all(Array.from({ length: 10 }, (_, i) => queue.add(i, { durability })));
        await addTen();
        for (const partition of queue.partitions) {
          const job = await queue.prepare('direct');
          await confirmCopies(queue, partition, job, durability);
        }
        // Each waits for its whole time, so they wait together.
        const tooMany = { replicas: 2, timeoutMs: 1_000 };
        await Promise.all(
          queue.partitions.map(async (partition) => {
            const shortfall = confirmCopies(queue, partition, await queue.prepare(1), tooMany);
            await assert.rejects(shortfall, (error) => isShortfall(error, 1));
          }),
        );
        const slot = await cluster.slotOf(queue.partitions[0]!.keys.cfg);
        const owner = await cluster.ownerOf(slot);
        await cluster.moveSlots(
          slot,
          slot,
          cluster.nodes.slice(0, 3).find((node) => node !== owner)!,
        );
        await addTen();
        assert.equal((await queue.counts()).waiting, 26);
      },
      { redis: cluster.url, partitions: 3 },
    );
  } finally {
    await cluster.stop();
  }
});
