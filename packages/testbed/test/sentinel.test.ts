/** Real sentinels: they find the master, replace a killed one, take it back as a replica, and leave a slow one alone. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { startSentinel } from '../src/index.js';

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
  await setup.takeBack(old);
  const { role, master_link_status, slave_priority } = await old.info('replication');
  assert.deepEqual([role, master_link_status, slave_priority], ['slave', 'up', '100']);
  const roles = [...old.log().matchAll(/^\d+:(\w) .*Ready to accept connections/gm)].map(([, mark]) => mark);
  // With its old data it was not a master for a moment.
  assert.deepEqual(roles, ['M', 'S']);
  assert.equal(await setup.failOver(), old);
  assert.equal(await old.command('GET', 'key'), 'value');
  client.disconnect();
  await setup.stop();
});

test('a master that is silent for longer than a dead one may be is not deposed', async () => {
  const downAfterMs = 300;
  const setup = await startSentinel({ replicas: 1, downAfterMs });
  const master = await setup.master();
  master.pause();
  await sleep(downAfterMs * 6);
  master.resume();
  assert.equal(await setup.master(), master);
  const [replica] = setup.servers.filter((server) => server !== master);
  assert.equal((await replica!.info('replication'))['role'], 'slave');
  await setup.stop();
});
