// Everything that a queue does, under the rights that docs/acl.md grants and no others.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import type { TestContext } from 'node:test';
import { isSluiceError } from '@sluice/base';
import { RedisLink } from '@sluice/redis';
import { startCluster, startRedis } from '@sluice/testbed';
import type { RedisServer } from '@sluice/testbed';
import { Queue } from '../src/index.js';
import { scripts, sharedScripts } from '../src/scripts.js';
import { runCycle } from './cycle.js';
import { Gathering } from './setup.js';

type Role = 'producer' | 'worker' | 'operator';
const roles: Role[] = ['producer', 'worker', 'operator'];
const password = 'secret';
const document = readFileSync(new URL('../../../../docs/acl.md', import.meta.url), 'utf8');

const all = { ...scripts, ...sharedScripts };
/** The scripts that each role runs; together they are all. */
const scriptsOf: Record<Role, (keyof typeof all)[]> = {
  producer: [
    ...([
      'declare',
      'enlist',
      'add',
      'addEach',
      'depend',
      'unblock',
      'chainKeep',
      'chainDrop',
      'cancel',
    ] as const),
    ...(['look', 'ask', 'count', 'schedule', 'unschedule', 'due'] as const),
  ],
  worker: [
    ...([
      'declare',
      'enlist',
      'open',
      'renew',
      'close',
      'claim',
      'take',
      'settle',
      'retry',
      'note',
      'rescue',
    ] as const),
    ...(['peek', 'addEach', 'intake', 'sweep', 'expire', 'chainTake', 'chainKeep', 'chainDrop'] as const),
    ...(['depend', 'unblock', 'due', 'tick', 'tally'] as const),
  ],
  operator: [
    ...([
      'declare',
      'enlist',
      'rule',
      'replay',
      'discard',
      'edit',
      'deaths',
      'letters',
      'causes',
      'expire',
    ] as const),
    ...(['cancel', 'unblock', 'look', 'ask', 'count', 'schedule', 'unschedule', 'due'] as const),
    ...(['browse', 'glance', 'crew', 'drain', 'hasten', 'retries', 'amend', 'mourn', 'trend'] as const),
  ],
};

/** What each role calls outside of scripts. */
const everyone = ['client|setname', 'eval', 'evalsha', 'info', 'ping'];
const directly: Record<Role, string[]> = {
  producer: ['hget', 'hgetall', 'lrange', 'lrem', 'wait', 'zrange', 'zscore'],
  worker: [
    'blmove',
    'blpop',
    'hget',
    'hgetall',
    'hmget',
    'hrandfield',
    'lrange',
    'lrem',
    'srandmember',
    'time',
  ],
  operator: [
    ...['hdel', 'hget', 'hgetall', 'hlen', 'hmget', 'hset', 'lrange', 'lrem', 'xrange', 'xread', 'xrevrange'],
    ...['zcard', 'zmscore', 'zrange', 'zscore'],
  ],
};

/** The documented command of a role, as words. */
function documented(role: Role): string[] {
  const line = new RegExp(`^ACL SETUSER sluice-${role} (.*)$`, 'm').exec(document)?.[1];
  assert.ok(line, `docs/acl.md has no command for the ${role}`);
  return line.replace('<password>', password).split(' ');
}

function neededBy(role: Role): string[] {
  const needed = new Set([...everyone, ...directly[role]]);
  for (const name of scriptsOf[role]) {
    const calls = all[name].source.matchAll(
      /redis\.p?call\(\s*(?:[\w.]+ and )?'([A-Z]+)'(?: or '([A-Z]+)')?/g,
    );
    for (const [, one, other] of calls) {
      needed.add(one!.toLowerCase());
      if (other) needed.add(other.toLowerCase());
    }
  }
  return [...needed].sort();
}

let redis: RedisServer;
before(async () => {
  redis = await startRedis({ acl: ['user default off'] });
  for (const role of roles) await redis.command('ACL', 'SETUSER', `sluice-${role}`, ...documented(role));
});
after(() => redis.stop());

function open(t: TestContext, role: Role, name: string): Queue<string, string> {
  const queue = new Queue<string, string>(name, { redis: redis.urlAs(`sluice-${role}`, password) });
  t.after(() => queue.close(500));
  return queue;
}

test('docs/acl.md grants each role what its scripts and its client call, and nothing else', () => {
  for (const role of roles) {
    const granted = documented(role).filter((word) => word.startsWith('+'));
    const others = documented(role).filter((word) => !word.startsWith('+'));
    assert.deepEqual(
      granted,
      neededBy(role).map((name) => `+${name}`),
      `the ${role}'s command must be: ACL SETUSER sluice-${role} ${others.join(' ')} ${neededBy(role)
        .map((name) => `+${name}`)
        .join(' ')}`,
    );
    assert.deepEqual(others, ['on', `>${password}`, 'resetkeys', '~sluice:*', 'resetchannels', '-@all']);
  }
  const placed = new Set(Object.values(scriptsOf).flat());
  assert.deepEqual(
    Object.keys(all).filter((name) => !placed.has(name as keyof typeof all)),
    [],
  );
});

test('every command that the client sends belongs to a role', () => {
  const folder = new URL('../../src/', import.meta.url);
  const known = new Set([...everyone, ...Object.values(directly).flat()]);
  // Needed on a cluster or by a newer Redis only, and documented as such.
  const special = ['cluster', 'waitaof'];
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.ts'))) {
    const text = readFileSync(new URL(file, folder), 'utf8');
    for (const [, command] of text.matchAll(/link\s*\.(?:call|once|callEverywhere)\(\s*'([A-Za-z]+)',/g)) {
      const name = command!.toLowerCase();
      assert.ok(known.has(name) || special.includes(name), `${file} sends ${name}, which no role may`);
    }
  }
});

test('all that a queue does can be done under the minimal rights, and Redis denied nothing', async (t) => {
  await redis.command('ACL', 'LOG', 'RESET');
  await runCycle({
    producer: open(t, 'producer', 'cycle'),
    worker: open(t, 'worker', 'cycle'),
    operator: open(t, 'operator', 'cycle'),
  });
  assert.deepEqual(await redis.command('ACL', 'LOG'), []);
});

test('a durable add works under the rights of a producer', async (t) => {
  const queue = open(t, 'producer', 'durable');
  const adding = queue.add('x', { id: 'x', durability: { replicas: 1, timeoutMs: 20 } });
  await assert.rejects(adding, (error) => isSluiceError(error, 'DURABILITY_UNKNOWN'));
  assert.equal((await queue.job('x'))?.state, 'waiting');
});

test('no role may look at all keys, empty the server, change it, or touch a key that is not of the queue', async (t) => {
  for (const role of roles) {
    const link = new RedisLink(redis.urlAs(`sluice-${role}`, password));
    t.after(() => link.close());
    for (const [command, ...args] of [
      ['KEYS', '*'],
      ['SCAN', '0'],
      ['FLUSHALL'],
      ['FLUSHDB'],
      ['CONFIG', 'GET', 'maxmemory'],
      ['CONFIG', 'SET', 'maxmemory', '1'],
      ['ACL', 'LIST'],
      ['DEBUG', 'SLEEP', '0'],
      ['SHUTDOWN'],
      ['SCRIPT', 'FLUSH'],
      ['MONITOR'],
      ['CLIENT', 'LIST'],
      ['HSET', 'foreign', 'a', 'b'],
      ['EVAL', "return redis.call('KEYS', '*')", '0'],
      ['EVAL', "return redis.call('SET', 'foreign', 'x')", '0'],
      ['EVAL', "return redis.call('CONFIG', 'GET', 'maxmemory')", '0'],
    ] as [string, ...string[]][]) {
      await assert.rejects(
        link.call(command, args),
        (error) =>
          isSluiceError(error, 'REDIS_REFUSED') &&
          /NOPERM|can't run|can't access|not allowed/i.test(error.message),
        `${role}: ${command} ${args.join(' ')}`,
      );
    }
  }
});

test('a producer cannot work: it is told so when it begins', async (t) => {
  const queue = open(t, 'producer', 'pretender');
  await queue.add('safe');
  const degraded = new Gathering<unknown>();
  const worker = queue.work(() => assert.fail('it must not get a job'));
  worker.on('degraded', (error) => degraded.push(error));
  void worker.start();
  const [error] = await degraded.reach(1);
  assert.ok(isSluiceError(error, 'REDIS_REFUSED'), String(error));
  await worker.stop(0);
  assert.equal((await queue.counts()).waiting, 1);
});

test('a foreign producer needs one command and one key', async (t) => {
  const queue = open(t, 'worker', 'foreign');
  const seen = new Gathering<string>();
  await queue
    .work((job) => {
      seen.push(job.data);
    })
    .start();
  await redis.command(
    'ACL',
    'SETUSER',
    'foreign',
    'on',
    `>${password}`,
    '-@all',
    '+rpush',
    '~sluice:{foreign:0}:inbox',
  );
  // By hand, as a program in any language would: RESP is a count, and each part with its length.
  const encode = (...parts: string[]) =>
    `*${parts.length}\r\n${parts.map((part) => `$${part.length}\r\n${part}\r\n`).join('')}`;
  const socket = connect(redis.port, redis.host);
  t.after(() => socket.destroy());
  socket.write(encode('AUTH', 'foreign', password));
  socket.write(encode('RPUSH', 'sluice:{foreign:0}:inbox', '{"data":"hello"}'));
  assert.deepEqual(await seen.reach(1), ['hello']);
});

test('a cluster needs the few rights more that are documented', async (t) => {
  const cluster = await startCluster({ masters: 3, replicasPer: 0 });
  t.after(() => cluster.stop());
  const more = /^- On a cluster[^`]*`([^`]+)`/m.exec(document)![1]!.split(' ');
  for (const node of cluster.nodes) {
    for (const role of roles) {
      await node.command('ACL', 'SETUSER', `sluice-${role}`, ...documented(role), ...more);
    }
  }
  const openOn = (role: Role) => {
    const redis = cluster.url.replace('://', `://sluice-${role}:${password}@`);
    return new Queue<string, string>('cycle', { redis, partitions: 3 });
  };
  const [producer, worker, operator] = roles.map(openOn) as [
    Queue<string, string>,
    Queue<string, string>,
    Queue<string, string>,
  ];
  try {
    await runCycle({ producer, worker, operator });
    for (const node of cluster.nodes) assert.deepEqual(await node.command('ACL', 'LOG'), []);
  } finally {
    await Promise.all([producer, worker, operator].map((queue) => queue.close(500)));
  }
});
