// Links to more than one server: a cluster whose nodes move, die and hang, and a master that sentinels choose.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { isSluiceError } from '@sluice/base';
import { startCluster, startProxy, startRedis, startSentinel, waitUntil } from '@sluice/testbed';
import type { RedisCluster, SentinelSetup } from '@sluice/testbed';
import { RedisLink } from '../src/index.js';

function open(t: TestContext, target: string): RedisLink {
  const link = new RedisLink(target);
  t.after(() => link.close());
  return link;
}

describe('a cluster', () => {
  let cluster: RedisCluster;
  /** One key for each of the three shards, in their order. */
  const keys: string[] = [];

  before(async () => {
    cluster = await startCluster({ masters: 3, replicasPer: 1 });
    for (const node of cluster.nodes.slice(0, 3)) {
      for (let i = 0; ; i++) {
        const key = `key:${i}`;
        if ((await cluster.ownerOf(await cluster.slotOf(key))) !== node) continue;
        keys.push(key);
        break;
      }
    }
  });
  after(() => cluster.stop());

  test('a command for everybody reaches every master, also when it is the first', async (t) => {
    const link = open(t, cluster.url);
    const replies = await link.callEverywhere('CLUSTER', ['MYID']);
    assert.equal(new Set(replies.map(String)).size, 3);
  });

  test('a link that does little asks little: the map is not read again and again', async (t) => {
    const link = open(t, cluster.url);
    await link.call('SET', [keys[0]!, 1]);
    const [node] = cluster.nodes as [(typeof cluster.nodes)[0]];
    const asked = async () =>
      Number(/calls=(\d+)/.exec((await node.info('commandstats'))['cmdstat_cluster|slots'] ?? '')?.[1] ?? 0);
    const before = await asked();
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    assert.ok((await asked()) - before <= 1);
  });

  test('calls go on while slots move', async (t) => {
    const link = open(t, cluster.url);
    const slot = await cluster.slotOf(keys[0]!);
    let sum = Number(await link.call('GET', [keys[0]!]));
    let moving = true;
    const counting = (async () => {
      while (moving) {
        await link.call('SET', [keys[0]!, ++sum]);
        await link.call('SET', [keys[1]!, sum]);
      }
    })();
    await cluster.moveSlots(slot, slot, cluster.nodes[1]!);
    await cluster.moveSlots(slot, slot, cluster.nodes[0]!);
    moving = false;
    await counting;
    assert.equal(Number(await link.call('GET', [keys[0]!])), sum);
  });

  test('bytes that are sent without a copy go where their key lives, also while its slot moves', async (t) => {
    const link = open(t, cluster.url);
    const slot = await cluster.slotOf(keys[0]!);
    const set = (byte: number) =>
      Promise.all(
        keys.map((key) => link.call('SET', [key, Buffer.alloc(200_000, byte)], { uncopied: true })),
      );
    await set(1);
    const moving = cluster.moveSlots(slot, slot, cluster.nodes[1]!);
    for (let byte = 2; byte < 20; byte++) await set(byte);
    await moving;
    await set(20);
    for (const key of keys) assert.deepEqual(await link.call('GET', [key]), Buffer.alloc(200_000, 20));
    await link.call('SET', [keys[0]!, 0]);
    await cluster.moveSlots(slot, slot, cluster.nodes[0]!);
  });

  test('a node whose connection hangs holds up nobody else, and its connection is replaced', async (t) => {
    const [, , hanging] = cluster.nodes as [unknown, unknown, (typeof cluster.nodes)[0]];
    const proxy = await startProxy(hanging.port);
    await hanging.command('CONFIG', 'SET', 'cluster-announce-port', proxy.port);
    t.after(async () => {
      await hanging.command('CONFIG', 'SET', 'cluster-announce-port', 0);
      await proxy.stop();
    });
    await waitUntil('everybody knows the new address', async () => {
      const maps = await Promise.all(cluster.nodes.map((node) => node.command('CLUSTER', 'NODES')));
      return maps.every((map) => String(map).includes(`:${proxy.port}@`));
    });
    const link = open(t, cluster.url);
    for (const key of keys) await link.call('SET', [key, 1]);
    proxy.blackHole(true);
    const error = await link.call('GET', [keys[2]!], { deadlineMs: 500 }).catch((e: unknown) => e);
    assert.ok(isSluiceError(error, 'REDIS_UNAVAILABLE'), String(error));
    assert.equal(String(await link.call('GET', [keys[0]!], { deadlineMs: 500 })), '1');
    // What was sent into the hole is lost, so this call depends on a new connection.
    const waiting = link.call('GET', [keys[2]!]);
    await new Promise((resolve) => setTimeout(resolve, 100));
    proxy.heal();
    assert.equal(String(await waiting), '1');
  });

  test('when a master dies, calls wait for its replica and then go there', async (t) => {
    const link = open(t, cluster.url);
    await link.call('SET', [keys[1]!, 'before']);
    const slot = await cluster.slotOf(keys[1]!);
    const failing = cluster.failOver(slot);
    await waitUntil('it is gone', () => !cluster.nodes[1]!.running);
    const value = (await link.call('GET', [keys[1]!], { deadlineMs: 30_000 })) as Buffer | null;
    // Replication does not wait for anybody: the last write may be lost with the master.
    assert.ok(value === null || value.toString() === 'before');
    await failing;
    await cluster.nodes[1]!.restart();
  });
});

describe('a master that sentinels choose', () => {
  let setup: SentinelSetup;

  before(async () => {
    setup = await startSentinel({ replicas: 1, sentinels: 3 });
  });
  after(() => setup.stop());

  test('a sentinel that accepts and says nothing does not keep the link from asking the next', async (t) => {
    // The proxy stands for a sentinel that hangs.
    const proxy = await startProxy(setup.sentinels[0]!.port);
    t.after(() => proxy.stop());
    proxy.blackHole(true);
    const hosts = [{ host: proxy.host, port: proxy.port }, ...setup.sentinels];
    const list = hosts.map(({ host, port }) => `${host}:${port}`).join(',');
    const link = open(t, `redis+sentinel://${list}/${setup.name}`);
    assert.equal(String(await link.call('SET', ['a', 1])), 'OK');
  });

  test('sentinels that ask for a password of their own get it', async (t) => {
    const master = await startRedis();
    const sentinel = await startRedis({
      sentinel: [`sentinel monitor main ${master.host} ${master.port} 1`],
    });
    t.after(() => Promise.all([sentinel.stop(), master.stop()]));
    await sentinel.command('ACL', 'SETUSER', 'default', 'resetpass', '>secret');
    const url = `redis+sentinel://${sentinel.host}:${sentinel.port}/main`;
    const link = open(t, `${url}?sentinelPassword=secret`);
    assert.equal(String(await link.call('SET', ['a', 1])), 'OK');
    assert.equal(await master.command('GET', 'a'), '1');
    await assert.rejects(open(t, url).call('PING', [], { deadlineMs: 500 }));
  });

  test('when the master dies, calls wait for the new one and then go there', async (t) => {
    const link = open(t, setup.url);
    await link.call('SET', ['a', 1]);
    const failing = setup.failOver();
    const old = await link.call('SET', ['a', 2], { deadlineMs: 30_000 });
    assert.equal(String(old), 'OK');
    const master = await failing;
    await link.call('SET', ['b', 3], { deadlineMs: 30_000 });
    assert.equal(await master.command('GET', 'b'), '3');
  });
});
