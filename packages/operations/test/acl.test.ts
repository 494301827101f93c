// Everything that operations do, under the rights that docs/acl.md grants and no others.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { GiveUp, Queue } from '@sluice/queue';
import { startRedis } from '@sluice/testbed';
import { Operations } from '../src/index.js';
import { scripts } from '../src/scripts.js';
import { eventually } from './setup.js';

const password = 'secret';
const document = readFileSync(new URL('../../../../docs/acl.md', import.meta.url), 'utf8');

function documented(role: string): string[] {
  const line = new RegExp(`^ACL SETUSER sluice-${role} (.*)$`, 'm').exec(document)?.[1];
  assert.ok(line, `docs/acl.md has no command for ${role}`);
  return line.replace('<password>', password).split(' ');
}

test('docs/acl.md grants operations what their scripts and their client call, and nothing else', () => {
  const needed = new Set(['client|setname', 'eval', 'evalsha', 'info', 'ping', 'hgetall', 'time', 'zrange']);
  for (const { source } of Object.values(scripts)) {
    for (const [, command] of source.matchAll(/redis\.call\('([A-Z]+)'/g)) needed.add(command!.toLowerCase());
  }
  const granted = documented('operations').filter((word) => word.startsWith('+'));
  assert.deepEqual(
    granted,
    [...needed].sort().map((name) => `+${name}`),
  );
});

test('all that operations do can be done under the minimal rights, and Redis denied nothing', async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  await redis.command('ACL', 'SETUSER', 'sluice-operations', ...documented('operations'));
  for (const role of ['producer', 'worker', 'operator']) {
    const more = documented(role).filter((word) => word.startsWith('+'));
    await redis.command('ACL', 'SETUSER', 'sluice-operations', ...more);
  }
  const url = redis.urlAs('sluice-operations', password);
  const queue = new Queue<string>('mail', { redis: url, attempts: 1 });
  t.after(() => queue.close(500));
  queue.work(() => {
    throw new GiveUp('bad');
  });
  await queue.add('bad');
  await eventually(async () => (await queue.dead.count()) === 1);
  const operations = new Operations({ redis: url, queueNamed: () => queue });
  t.after(() => operations.close(500));
  const request = { kind: 'dead.discard', queue: 'mail', choice: 'all' } as const;
  const cancelled = await operations.start(request);
  assert.equal((await operations.cancel(cancelled))!.state, 'cancelled');
  operations.work();
  const id = await operations.start(request);
  await eventually(async () => (await operations.get(id))?.state === 'done');
  assert.equal((await operations.list()).items.length, 2);
  assert.equal((await operations.get(id))!.progress.moved, 1);
  assert.deepEqual(await redis.command('ACL', 'LOG'), []);
});
