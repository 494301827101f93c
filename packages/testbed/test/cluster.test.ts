/** A real cluster: it forms, moves slots with their keys under a client's hands, and survives a master's death. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Cluster } from 'ioredis';
import { startCluster, type RedisCluster } from '../src/index.js';

let cluster: RedisCluster;
let client: Cluster;

before(async () => {
  cluster = await startCluster({ masters: 3, replicasPer: 1 });
  client = new Cluster(cluster.seeds);
});
after(async () => {
  client.disconnect();
  await cluster.stop();
});

test('a cluster of three masters serves every slot', async () => {
  for (let i = 0; i < 50; i++) await client.set(`key:${i}`, String(i));
  for (let i = 0; i < 50; i++) assert.equal(await client.get(`key:${i}`), String(i));
  const owners = await Promise.all([0, 8_000, 16_383].map((slot) => cluster.ownerOf(slot)));
  assert.deepEqual(owners, cluster.nodes.slice(0, 3));
});

test('slots move with their keys while a client writes', async () => {
  const slot = await cluster.slotOf('{moved}');
  const from = await cluster.ownerOf(slot);
  const to = cluster.nodes.slice(0, 3).find((node) => node !== from)!;
  let writing = true;
  let written = 0;
  const writer = (async () => {
    while (writing) await client.set(`{moved}:${written++}`, 'x');
  })();
  await cluster.moveSlots(slot - 2, slot + 2, to);
  writing = false;
  await writer;
  assert.equal(await cluster.ownerOf(slot), to);
  for (let i = 0; i < written; i++) assert.equal(await client.get(`{moved}:${i}`), 'x');
  await cluster.waitHealthy();
});

test('a replica takes over the slots of a killed master', async () => {
  const slot = await cluster.slotOf('key:1');
  const old = await cluster.ownerOf(slot);
  const owner = await cluster.failOver(slot);
  assert.notEqual(owner, old);
  assert.equal(await client.get('key:1'), '1');
});
