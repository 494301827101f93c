// Scripts with named keys and arguments: loaded, compared with their heads, and run whether or not the server knows them.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { makeOwnedFolder, startProxy, startRedis } from '@sluice/testbed';
import type { RedisServer } from '@sluice/testbed';
import { RedisLink, loadScript } from '../src/index.js';

let redis: RedisServer;
let link: RedisLink;
let folder: URL;

before(async () => {
  redis = await startRedis();
  link = new RedisLink(redis.url);
  const path = makeOwnedFolder('scripts');
  mkdirSync(path, { recursive: true });
  const write = (name: string, ...lines: string[]) =>
    writeFileSync(join(path, `${name}.lua`), lines.join('\n'));
  write(
    'count',
    '#!lua',
    '-- count.lua: counts.',
    '-- KEYS counter STRING',
    '-- KEYS log LIST',
    '-- ARGV by, note',
    '-- Returns the sum',
    "redis.call('RPUSH', log, note)",
    "return redis.call('INCRBY', counter, twice(by))",
  );
  write('twice', 'local function twice(n) return n * 2 end');
  write(
    'plain',
    '#!lua flags=no-writes',
    '-- KEYS none',
    '-- ARGV none',
    '-- Returns a word',
    "return 'word'",
  );
  write('broken', '#!lua', '-- KEYS none', '-- ARGV none', '-- Returns nothing', "return redis.call('GET')");
  folder = pathToFileURL(`${path}/`);
});
after(async () => {
  link.close();
  await redis.stop();
});

const loadCount = () => loadScript(folder, 'count', ['counter', 'log'], ['by', 'note'], ['twice']);

async function callsOf(command: string): Promise<number> {
  return Number(/calls=(\d+)/.exec((await redis.info('commandstats'))[`cmdstat_${command}`] ?? '')?.[1] ?? 0);
}

test('keys and arguments reach the script by name, in any order, with a prelude before the body', async () => {
  const count = loadCount();
  const note = Buffer.from([0, 255]);
  assert.equal(await link.run(count, { log: 'l', counter: 'c' }, { note, by: 3 }), 6);
  assert.deepEqual(await link.call('LRANGE', ['l', 0, -1]), [note]);
  const plain = loadScript(folder, 'plain', [], []);
  assert.equal(String(await link.run(plain, {}, {})), 'word');
});

test('the first line stays the first: flags are honoured', () => {
  const { source, sha } = loadCount();
  assert.ok(source.startsWith('#!lua\n'));
  assert.match(sha, /^[0-9a-f]{40}$/);
  assert.equal(loadScript(folder, 'plain', [], []).source.split('\n')[0], '#!lua flags=no-writes');
});

test('names that differ between the script and its caller are refused when it is loaded', () => {
  assert.throws(() => loadScript(folder, 'count', ['counter'], ['by', 'note'], ['twice']), /declares KEYS/);
  assert.throws(() => loadScript(folder, 'count', ['log', 'counter'], ['by', 'note']), /declares KEYS/);
  assert.throws(() => loadScript(folder, 'count', ['counter', 'log'], ['by']), /declares ARGV/);
  assert.throws(() => loadScript(folder, 'absent', [], []), /ENOENT/);
});

test('a script that the server has forgotten is sent again, once, and then known', async () => {
  const count = loadCount();
  const run = () => link.run(count, { log: 'l2', counter: 'c2' }, { note: 'n', by: 1 });
  await run();
  await link.call('SCRIPT', ['FLUSH']);
  const [evals, shas] = [await callsOf('eval'), await callsOf('evalsha')];
  assert.equal(await run(), 4);
  assert.equal(await run(), 6);
  assert.deepEqual([(await callsOf('eval')) - evals, (await callsOf('evalsha')) - shas], [1, 2]);
});

test('many runs of a forgotten script at once all succeed', async () => {
  const count = loadCount();
  await link.call('SCRIPT', ['FLUSH']);
  const sums = await Promise.all(
    Array.from({ length: 100 }, () => link.run(count, { log: 'l3', counter: 'c3' }, { note: 'n', by: 1 })),
  );
  assert.deepEqual(
    sums.map(Number).sort((a, b) => a - b),
    Array.from({ length: 100 }, (_, i) => 2 * (i + 1)),
  );
});

test('a script whose reply was lost is run again', async () => {
  const proxy = await startProxy(redis.port);
  const other = new RedisLink(proxy.url);
  const count = loadCount();
  await other.run(count, { log: 'l4', counter: 'c4' }, { note: 'n', by: 1 });
  const lost = proxy.loseReplies({ when: (request) => request.includes(count.sha) });
  assert.equal(await other.run(count, { log: 'l4', counter: 'c4' }, { note: 'n', by: 1 }), 6);
  await lost;
  other.close();
  await proxy.stop();
});

test('a script that fails says so at once, with what Redis says of it', async () => {
  const broken = loadScript(folder, 'broken', [], []);
  await assert.rejects(link.run(broken, {}, {}), { code: 'REDIS_REFUSED' });
});
