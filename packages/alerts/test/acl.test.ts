/** Thresholds are judged under the rights that docs/acl.md grants and no others. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Snapshot } from '@sluice/inspect';
import { startRedis } from '@sluice/testbed';
import { Alerts } from '../src/index.js';

const password = 'secret';
const file = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8');
const sources = ['../../lua/lead.lua', '../../lua/keep.lua', '../../src/alerts.ts'].map(file).join('\n');
const called = [...sources.matchAll(/redis\.call\('([A-Z]+)'/g)].map(([, command]) => command!.toLowerCase());
const documented = /^ACL SETUSER sluice-alerts (.*)$/m
  .exec(file('../../../../docs/acl.md'))![1]!
  .replace('<password>', password)
  .split(' ');

test('docs/acl.md grants alerts what they call, and nothing else', () => {
  const commands = [...new Set(['client|setname', 'eval', 'evalsha', 'info', 'ping', ...called])].sort();
  const keys = ['resetkeys', '~sluice:{alerts}:*', 'resetchannels', '-@all'];
  assert.deepEqual(documented, ['on', `>${password}`, ...keys, ...commands.map((name) => `+${name}`)]);
});

test('thresholds are judged and listed under the minimal rights, and Redis denied nothing', async (t) => {
  const redis = await startRedis({ acl: ['user default off'] });
  t.after(() => redis.stop());
  await redis.command('ACL', 'SETUSER', 'sluice-alerts', ...documented);
  const snapshot = { atMs: 1, queues: [], redis: null, cache: null } as unknown as Snapshot;
  const alerts = new Alerts({
    inspect: {
      snapshot: async () => snapshot,
      series: async () => assert.fail('there is no queue'),
      deadSummaries: async () => [],
      deadGroups: async () => assert.fail('there are no letters'),
    },
    webhooks: { publish: async () => {} },
    redis: redis.urlAs('sluice-alerts', password),
  });
  t.after(() => alerts.close());
  assert.equal(await alerts.look(), true);
  assert.equal((await alerts.list())[0]!.state, 'ok');
  assert.deepEqual(await redis.command('ACL', 'LOG'), []);
});
