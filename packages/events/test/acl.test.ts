/** Publishing and reading events under the rights that docs/acl.md grants and no others. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { RedisLink } from '@sluice/redis';
import { startRedis } from '@sluice/testbed';
import { readEvents, readNewest, RedisStreamSink } from '../src/index.js';

const password = 'secret';
const file = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8');
const document = file('../../../../docs/acl.md');
const script = file('../../lua/publish.lua');
const client = file('../../src/redisStream.ts');

const everyone = ['client|setname', 'info', 'ping'];
const commandsIn = (text: string, shape: RegExp): string[] =>
  [...text.matchAll(shape)].map(([, command]) => command!.toLowerCase());
const needed = {
  relay: [...everyone, 'eval', 'evalsha', ...commandsIn(script, /redis\.call\('([A-Z]+)'/g)],
  listener: [...everyone, ...commandsIn(client, /redis\.(?:call|once)\('([A-Z]+)'/g)],
};
const keys = { relay: '~sluice:{events}:*', listener: '~sluice:{events}:events' };
const roles = ['relay', 'listener'] as const;

function documented(role: string): string[] {
  const line = new RegExp(`^ACL SETUSER sluice-${role} (.*)$`, 'm').exec(document)?.[1];
  assert.ok(line, `docs/acl.md has no command for the ${role}`);
  return line.replace('<password>', password).split(' ');
}

test('docs/acl.md grants the relay and whoever listens what they call, and nothing else', () => {
  for (const role of roles) {
    const commands = [...new Set(needed[role])].sort().map((name) => `+${name}`);
    const words = ['on', `>${password}`, 'resetkeys', keys[role], 'resetchannels', '-@all', ...commands];
    assert.deepEqual(
      documented(role),
      words,
      `the command must be: ACL SETUSER sluice-${role} ${words.join(' ')}`,
    );
  }
});

test('events are published and read under the minimal rights, and Redis denied nothing', async (t) => {
  const redis = await startRedis({ acl: ['user default off'] });
  t.after(() => redis.stop());
  for (const role of roles) await redis.command('ACL', 'SETUSER', `sluice-${role}`, ...documented(role));
  const [relay, listener] = roles.map((role) => new RedisLink(redis.urlAs(`sluice-${role}`, password)));
  t.after(() => {
    relay!.close();
    listener!.close();
  });
  const sink = new RedisStreamSink({ redis: relay! });
  const read = (options: object) => readEvents({ redis: listener!, after: '0', ...options });
  const waiting = read({ blockMs: 5_000 });
  await sink.publish([{ eventId: 'e', topic: 't', key: 'k', value: '{}' }]);
  assert.equal((await waiting).length, 1);
  assert.equal((await read({})).length, 1);
  assert.equal((await readNewest({ redis: listener! })).length, 1);
  assert.deepEqual(await redis.command('ACL', 'LOG'), []);
});
