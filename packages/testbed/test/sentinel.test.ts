/** Real sentinels: they find the master, replace a killed one, and take it back as a replica. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { startSentinel, waitUntil } from '../src/index.js';

test('sentinels replace a killed master and take it back as a replica', async () => {
  const setup = await startSentinel({ replicas: 1 });
  const client = new Redis({ name: setup.name, sentinels: setup.sentinels });
  client.on('error', () => {});
  await client.set('key', 'value');
  assert.equal(await client.wait(1, 2_000), 1);
  const old = await setup.master();
  const master = await setup.failOver();
  assert.notEqual(master, old);
  assert.equal(await client.get('key'), 'value');
  await old.restart();
  await waitUntil('the old master follows the new one', async () => {
    const { role, master_link_status } = await old.info('replication');
    return role === 'slave' && master_link_status === 'up';
  });
  client.disconnect();
  await setup.stop();
});
