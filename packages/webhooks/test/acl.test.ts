/** Notes and places under the rights that docs/acl.md grants and no others. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { RedisLink } from '@sluice/redis';
import { startRedis } from '@sluice/testbed';
import { Deliveries } from '../src/deliveries.js';
import { jobCursorKey } from '../src/keys.js';

const password = 'secret';
const file = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8');
const sources = readdirSync(new URL('../../src/', import.meta.url)).map((name) => file(`../../src/${name}`));
const commandsIn = (text: string, shape: RegExp): string[] =>
  [...text.matchAll(shape)].map(([, command]) => command!.toLowerCase());
const needed = [
  ...['client|setname', 'info', 'ping', 'eval', 'evalsha'],
  ...commandsIn(file('../../lua/note.lua'), /redis\.call\('([A-Z]+)'/g),
  ...commandsIn(sources.join('\n'), /redis\.call\('([A-Z]+)'/g),
];
const documented = /^ACL SETUSER sluice-webhooks (.*)$/m
  .exec(file('../../../../docs/acl.md'))![1]!
  .replace('<password>', password)
  .split(' ');

test('docs/acl.md grants webhooks what they call, and nothing else', () => {
  const commands = [...new Set(needed)].sort().map((name) => `+${name}`);
  const keys = ['resetkeys', '~sluice:{webhooks}:*', 'resetchannels', '-@all'];
  assert.deepEqual(documented, ['on', `>${password}`, ...keys, ...commands]);
});

test('deliveries are noted, listed and forgotten, and places kept, under the minimal rights', async (t) => {
  const redis = await startRedis({ acl: ['user default off'] });
  t.after(() => redis.stop());
  await redis.command('ACL', 'SETUSER', 'sluice-webhooks', ...documented);
  const link = new RedisLink(redis.urlAs('sluice-webhooks', password));
  t.after(() => link.close());
  const deliveries = new Deliveries(link, 'sluice');
  const note = { eventId: 'e', topic: 't', state: 'delivered' as const, attempt: 1, tookMs: 1 };
  for (let i = 0; i < 102; i++)
    await deliveries.note('wh', { ...note, id: `d${i}`, at: new Date(i).toISOString() });
  assert.deepEqual(
    (await deliveries.list('wh', 2)).map(({ id }) => id),
    ['d101', 'd100'],
  );
  assert.equal((await deliveries.list('wh', 1_000)).length, 100);
  await deliveries.forget('wh');
  assert.deepEqual(await deliveries.list('wh', 10), []);
  const key = jobCursorKey('sluice', 'mail');
  await link.call('SET', [key, '0']);
  assert.equal(String(await link.call('GET', [key])), '0');
  assert.deepEqual(await redis.command('ACL', 'LOG'), []);
});
