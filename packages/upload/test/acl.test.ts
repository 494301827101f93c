// Everything that uploads do, under the rights that docs/acl.md grants and no others.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { startRedis, waitUntil, type RedisServer } from '@sluice/testbed';
import { scripts } from '../src/scripts.js';
import {
  begin,
  bytesOf,
  ended,
  mebibyte,
  quick,
  sendMissing,
  sendRange,
  sha256,
  startService,
  stopServers,
  stream,
  tenant,
} from './harness.js';

const password = 'secret';
const document = readFileSync(new URL('../../../../docs/acl.md', import.meta.url), 'utf8');
/** What every connection sends. */
const everyone = ['client|setname', 'info', 'ping'];
/** `queues` is the list that the queue of uploads enters itself into. */
const keysOf = { uploads: ['~sluice:{uploads:*', '~sluice:queues'], chunks: ['~sluice:{frames:*'] };

/** The documented command of a role, as words. */
function documented(role: string): string[] {
  const line = new RegExp(`^ACL SETUSER sluice-${role} (.*)$`, 'm').exec(document)?.[1];
  assert.ok(line, `docs/acl.md has no command for ${role}`);
  return line.replace('<password>', password).split(' ');
}

/** What the sources send outside of scripts. Frames are the only ones that talk to the chunks Redis. */
function sentBy(isFrames: boolean): string[] {
  const folder = new URL('../../src/', import.meta.url);
  const names = readdirSync(folder).filter(
    (name) => name.endsWith('.ts') && (name === 'frames.ts') === isFrames,
  );
  const text = names.map((name) => readFileSync(new URL(name, folder), 'utf8')).join('\n');
  return [...text.matchAll(/\.(?:call|once)\(\s*'([A-Z]+)',/g)].map(([, command]) => command!.toLowerCase());
}

function neededBy(role: keyof typeof keysOf): string[] {
  const needed = new Set([...everyone, ...sentBy(role === 'chunks')]);
  if (role === 'uploads') {
    for (const name of ['eval', 'evalsha']) needed.add(name);
    for (const { source } of Object.values(scripts))
      for (const [, command] of source.matchAll(/redis\.p?call\(\s*'([A-Z]+)'/g))
        needed.add(command!.toLowerCase());
  }
  return [...needed].sort();
}

let redis: RedisServer;
let chunks: RedisServer;
before(async () => {
  [redis, chunks] = await Promise.all([
    startRedis({ acl: ['user default off'] }),
    startRedis({ acl: ['user default off'] }),
  ]);
  await redis.command('ACL', 'SETUSER', 'sluice-uploads', ...documented('uploads'));
  // As the document says: the jobs need the rights of a producer and of a worker, on the same keys.
  const more = (role: string) => documented(role).filter((word) => word.startsWith('+'));
  await redis.command('ACL', 'SETUSER', 'sluice-uploads', ...more('producer'), ...more('worker'));
  await chunks.command('ACL', 'SETUSER', 'sluice-chunks', ...documented('chunks'));
});
after(async () => {
  await stopServers();
  await Promise.all([redis.stop(), chunks.stop()]);
});

for (const role of ['uploads', 'chunks'] as const)
  test(`docs/acl.md grants ${role} what the scripts and the engine call, and nothing else`, () => {
    const words = documented(role);
    const others = words.filter((word) => !word.startsWith('+'));
    const needed = neededBy(role).map((name) => `+${name}`);
    const message = `the command must be: ACL SETUSER sluice-${role} ${[...others, ...needed].join(' ')}`;
    assert.deepEqual(
      words.filter((word) => word.startsWith('+')),
      needed,
      message,
    );
    assert.deepEqual(others, ['on', `>${password}`, 'resetkeys', ...keysOf[role], 'resetchannels', '-@all']);
  });

test('all that uploads do can be done under the minimal rights, and Redis denied nothing', async (t) => {
  const service = await startService(t, {
    redis: redis.urlAs('sluice-uploads', password),
    chunksRedis: chunks.urlAs('sluice-chunks', password),
    settings: { ...quick, prefix: 'sluice', spillAfterMs: 300, lookAgainMs: 100, idleMs: 6_000 },
  });
  const { uploads } = service;
  const bytes = bytesOf(2 * mebibyte + 500_000);
  const limits = { maxBytes: 100 * mebibyte };
  const { id } = await begin(uploads, 'large', { limits });
  const seen: string[] = [];
  const watching = await uploads.watch(id, ({ state }) => void seen.push(state));
  await sendRange(uploads, id, bytes, 1_200_000, 1_500_000);
  await sendRange(uploads, id, bytes, 0, 700_000);
  await waitUntil('a tail is staged', async () => {
    await uploads.tend();
    return (await service.store.list('')).objects.length > 0;
  });
  await uploads.declare(id, { size: bytes.length });
  assert.equal((await sendMissing(uploads, id, bytes)).result!.sha256, sha256(bytes));
  await waitUntil('the end was seen', () => seen.includes('COMPLETED'));
  watching.stop();
  const small = { tenant, drive: 'main', path: 'small' };
  await uploads.store(small, stream(bytes.subarray(0, 99)), 99);
  const { id: cancelled } = await begin(uploads, 'cancelled', { size: 10 });
  await uploads.cancel(cancelled);
  const { id: idle } = await begin(uploads, 'idle', { size: bytes.length });
  await sendRange(uploads, idle, bytes, 0, 300_000);
  await chunks.command('FLUSHALL');
  assert.equal((await ended(uploads, idle)).state, 'EXPIRED');
  assert.match(await uploads.metrics(), /\n/);
  await uploads.check();
  assert.deepEqual(await redis.command('ACL', 'LOG'), []);
  assert.deepEqual(await chunks.command('ACL', 'LOG'), []);
});
