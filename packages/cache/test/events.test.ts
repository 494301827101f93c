// The families of Sluice and the events that kill them, as the source document lists them.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { applyEvent, defineCache, families, killedBy, prometheusText, valueName } from '../src/index.js';
import type { CacheFamily, DomainEvent, Family } from '../src/index.js';
import { latch } from '@sluice/testbed';
import { eventually, useRedis } from './setup.js';

const bed = useRedis();
const md5 = (text: string) => createHash('md5').update(text).digest('hex');
const digest = (text: string) => createHash('sha256').update(text).digest('base64url');

test('keys and lives are those of the source document', () => {
  const rows: [Family<never, unknown>, unknown, string, number][] = [
    [families.user, 7, 'user:7', 900],
    [families.userRbac, 7, 'user:rbac:7', 900],
    [families.jobStatus, 'j1', 'job:status:j1', 5],
    [families.jobProgress, 'j1', 'job:progress:j1', 5],
    [families.docSummary, 3, 'doc:summary:3', 3_600],
    [families.docTranscription, 3, 'doc:transcription:3', 3_600],
    [families.docTranslation, 3, 'doc:translation:3', 3_600],
    [families.vectorSearch, { query: 'q', jobId: 'j1' }, `vector:search:${md5('q')}:j1`, 1_800],
    [families.graph, { jobId: 'j1', documentIds: [2, 1] }, `graph:j1:${digest('["1","2"]')}`, 600],
    [families.usersManagers, undefined, 'users:managers', 300],
    [families.usersAnalysts, 9, 'users:analysts:9', 300],
  ];
  for (const [family, key, name, ttlSeconds] of rows) {
    assert.equal(valueName(family, key as never), name);
    assert.equal(family.ttlMs, ttlSeconds * 1_000, name);
  }
  assert.equal(families.jobStatus.nearMs, 0, 'the state of a job leaves no copies');
});

test('values of different families, and of keys made to meet, have different names', () => {
  // Published by Marc Stevens: two texts with one MD5.
  const [one, two] = ['A', 'E'].map(
    (sign) => `TEXTCOLLBYfGiJUETHQ4h${sign}cKSMd5zYpgqf1YRDhkmxHkhPWptrkoyz28wnI9V0aHeAuaKnak`,
  ) as [string, string];
  assert.equal(md5(one), md5(two));
  // Tenants, drives and ids that are called like the families.
  const words = ['at', 'id', 'list', 'all', 'tree', 'children', 'ended', 'a:b', 'a', 'b'];
  const names: string[] = [];
  const add = <K, V>(family: Family<K, V>, key: K) => names.push(valueName(family, key));
  for (const tenant of words) {
    for (const id of words) {
      add(families.node, { tenant, id });
      add(families.drive, { tenant, name: id });
      add(families.driveById, { tenant, id });
      add(families.endedUpload, { tenant, id });
      for (const path of [one, two, ...words]) {
        const place = { tenant, drive: id, path };
        add(families.nodeAt, place);
        add(families.nodeList, { ...place, after: '', limit: 1 });
        add(families.nodeList, { ...place, after: path, limit: 1 });
      }
    }
    for (const after of [one, two, ...words]) add(families.driveList, { tenant, after, limit: 1 });
  }
  for (const documentIds of [['a', 'b'], ['a\nb'], ['a,b'], [one], [two]])
    add(families.graph, { jobId: 'j', documentIds });
  assert.equal(new Set(names).size, names.length);
  const groups = [one, two].map(
    (path) => killedBy({ type: 'folder.changed', tenant: 't', drive: 'd', path }).groups[0],
  );
  assert.notEqual(groups[0], groups[1]);
});

test('an event kills what the source document lists, and nothing else', () => {
  const table: [DomainEvent, string[], string[]][] = [
    [{ type: 'user.changed', userId: 7 }, ['user:7', 'user:rbac:7', 'users:managers'], ['users:analysts']],
    [{ type: 'job.status.changed', jobId: 'j1' }, ['job:status:j1', 'job:progress:j1'], []],
    [
      { type: 'document.processed', documentId: 3 },
      ['doc:summary:3', 'doc:transcription:3', 'doc:translation:3'],
      ['vector:search'],
    ],
    [{ type: 'graph.entity.added', jobId: 'j1' }, [], ['graph:j1']],
    [
      {
        type: 'node.changed',
        tenant: 't',
        nodeId: 'n1',
        at: { drive: 'main', path: 'a/b' },
        withSubtree: false,
      },
      ['node:t:n1', `node:at:t:main:${digest('a/b')}`],
      [`node:children:t:main:${digest('a')}`],
    ],
    [
      { type: 'folder.changed', tenant: 't', drive: 'main', path: '' },
      [],
      [`node:children:t:main:${digest('')}`],
    ],
    [{ type: 'node.changed', tenant: 't', nodeId: 'n1', withSubtree: true }, ['node:t:n1'], ['node:tree:t']],
    [{ type: 'drive.created', tenant: 't' }, [], ['drive:all:t']],
    [{ type: 'drive.changed', tenant: 't' }, [], ['drive:all:t', 'node:tree:t']],
    [{ type: 'upload.ended', tenant: 't', uploadId: 'u1' }, ['upload:ended:t:u1'], []],
  ];
  for (const [event, names, groups] of table) assert.deepEqual(killedBy(event), { names, groups });
  assert.deepEqual(killedBy(...table.map(([event]) => event), table[0]![0]).groups.length, 7, 'each once');
});

test('applied to a cache, an event kills these values and leaves the others', async (t) => {
  const cache = await bed.cache(t);
  let version = 0;
  const load = () => ({ version, type: 'FILE', status: 'ACTIVE' }) as never;
  const opened = Object.fromEntries(
    Object.entries(families).map(([name, family]) => [
      name,
      cache.open(family as unknown as Family<unknown, unknown>, { load }) as CacheFamily<
        unknown,
        { version: number }
      >,
    ]),
  ) as Record<keyof typeof families, CacheFamily<unknown, { version: number }>>;
  const values: [keyof typeof families, unknown][] = [
    ['user', 7],
    ['user', 8],
    ['userRbac', 7],
    ['usersManagers', undefined],
    ['usersAnalysts', 1],
    ['usersAnalysts', 2],
    ['jobStatus', 'j1'],
    ['jobProgress', 'j1'],
    ['docSummary', 3],
    ['docTranscription', 3],
    ['docTranslation', 3],
    ['docTranslation', 4],
    ['vectorSearch', { query: 'q', jobId: 'j1' }],
    ['vectorSearch', { query: 'q', jobId: 'j2' }],
    ['graph', { jobId: 'j1', documentIds: [1] }],
    ['graph', { jobId: 'j1', documentIds: [2] }],
    ['graph', { jobId: 'j2', documentIds: [1] }],
    ['node', { tenant: 't', id: 'n1' }],
    ['node', { tenant: 't', id: 'n2' }],
    ['nodeAt', { tenant: 't', drive: 'main', path: 'a/b' }],
    ['nodeAt', { tenant: 't', drive: 'main', path: 'a/c' }],
    ['nodeAt', { tenant: 'u', drive: 'main', path: 'a/b' }],
    ['drive', { tenant: 't', name: 'main' }],
    ['driveById', { tenant: 't', id: 'd1' }],
    ['driveById', { tenant: 'u', id: 'd1' }],
    ['driveList', { tenant: 't', after: '', limit: 10 }],
    ['driveList', { tenant: 't', after: 'main', limit: 10 }],
    ['driveList', { tenant: 'u', after: '', limit: 10 }],
  ];
  const killed = async (event: DomainEvent) => {
    version += 1;
    assert.equal(await applyEvent(cache, event), 'applied');
    assert.equal(await applyEvent(cache, event), 'applied', 'and again from the outbox');
    const reads = values.map(async ([name, key]) => [name, (await opened[name].get(key)).version] as const);
    const found = (await Promise.all(reads)).filter(([, seen]) => seen === version);
    return found.map(([name]) => name);
  };
  // Job states live for five seconds only; the test must not depend on how fast it is.
  for (const [name, key] of values) await opened[name].get(key);
  const stable = (names: string[]) => names.filter((name) => !name.startsWith('job'));
  assert.deepEqual(stable(await killed({ type: 'user.changed', userId: 7 })), [
    'user',
    'userRbac',
    'usersManagers',
    'usersAnalysts',
    'usersAnalysts',
  ]);
  const jobs = await killed({ type: 'job.status.changed', jobId: 'j1' });
  assert.deepEqual(stable(jobs), []);
  assert.deepEqual(jobs, ['jobStatus', 'jobProgress']);
  assert.deepEqual(stable(await killed({ type: 'document.processed', documentId: 3 })), [
    'docSummary',
    'docTranscription',
    'docTranslation',
    'vectorSearch',
    'vectorSearch',
  ]);
  assert.deepEqual(stable(await killed({ type: 'graph.entity.added', jobId: 'j1' })), ['graph', 'graph']);
  const node = { type: 'node.changed', tenant: 't', nodeId: 'n1' } as const;
  const at = { drive: 'main', path: 'a/b' };
  assert.deepEqual(stable(await killed({ ...node, at, withSubtree: false })), ['node', 'nodeAt']);
  assert.deepEqual(stable(await killed({ ...node, withSubtree: true })), [
    'node',
    'node',
    'nodeAt',
    'nodeAt',
  ]);
  assert.deepEqual(stable(await killed({ type: 'drive.changed', tenant: 't' })), [
    ...['node', 'node', 'nodeAt', 'nodeAt'],
    ...['drive', 'driveById', 'driveList', 'driveList'],
  ]);
  assert.deepEqual(stable(await killed({ type: 'drive.created', tenant: 't' })), [
    ...['drive', 'driveById', 'driveList', 'driveList'],
  ]);
});

test('a load is counted by how it ended, and a counter never goes down', async (t) => {
  const cache = await bed.cache(t);
  const { opened, open } = latch();
  const load = async (): Promise<never> => {
    await opened;
    throw new Error('broken');
  };
  const users = cache.open(families.user, { load });
  const loads = (outcome: string) => {
    const line = new RegExp(`^sluice_cache_loads_total\\{family="user",outcome="${outcome}"\\} (\\d+)$`, 'm');
    return Number(line.exec(prometheusText(cache.statistics()))?.[1]);
  };
  const reading = users.get(1);
  reading.catch(() => {});
  await eventually('the load has begun', () => users.statistics().loads === 1);
  assert.deepEqual([loads('loaded'), loads('failed')], [0, 0]);
  open();
  await assert.rejects(reading, /broken/);
  assert.deepEqual([loads('loaded'), loads('failed')], [0, 1]);
});

test('how long callers waited is counted: for Redis, for loads, once for many values, not at all for copies', async (t) => {
  const cache = await bed.cache(t);
  const loadMs = 80;
  const family = defineCache({ name: 'slow', key: (id: number) => id, ttlMs: 60_000, nearMs: 5_000 });
  const slow = cache.open(family, {
    loadMany: async (ids) => {
      await new Promise((resolve) => setTimeout(resolve, loadMs));
      return ids.map((id) => ({ id }));
    },
  });
  const waited = async (read: () => Promise<unknown>) => {
    const before = slow.statistics().waitedMs;
    await read();
    return slow.statistics().waitedMs - before;
  };
  const beganMs = performance.now();
  const forMany = await waited(() => slow.getMany([1, 2, 3, 4, 5, 6, 7, 8]));
  const tookMs = performance.now() - beganMs;
  assert.ok(
    forMany >= loadMs - 1 && forMany <= tookMs + 1,
    `${forMany} ms for eight values in one call of ${tookMs} ms`,
  );
  const forThree = await waited(() => Promise.all([slow.get(9), slow.get(9), slow.get(9)]));
  assert.ok(forThree >= 3 * (loadMs - 1), `${forThree} ms for three callers`);
  assert.ok((await waited(() => slow.get(1))) > 0);
  await eventually('there is a copy', async () => {
    await slow.get(2);
    return (await waited(() => slow.get(2))) === 0;
  });
});

test('statistics of each family are told to Prometheus', async (t) => {
  const cache = await bed.cache(t);
  const users = cache.open(families.user, { load: (id) => ({ id, email: 'a@b.c', rbac_level: 'analyst' }) });
  await users.get(1);
  await users.get(1);
  const text = prometheusText(cache.statistics());
  assert.match(text, /^# TYPE sluice_cache_reads_total counter$/m);
  assert.match(text, /^sluice_cache_reads_total\{family="user",from="load"\} 1$/m);
  assert.match(text, /^sluice_cache_loads_total\{family="user",outcome="loaded"\} 1$/m);
  assert.match(text, /^sluice_cache_average_remaining_ttl_seconds\{family="user"\} 8\d\d(\.\d+)?$/m);
  assert.match(text, /^sluice_cache_wait_seconds_total\{family="user"\} \d/m);
  assert.match(text, /^sluice_cache_breaker_open 0$/m);
  for (const line of text.trim().split('\n'))
    assert.match(line, /^(# (HELP|TYPE) \w+ .+|\w+(\{[^}]*\})? [\d.e+-]+)$/);
  const { hitRate, averageLoadMs } = users.statistics();
  assert.equal(hitRate, 0.5);
  assert.ok(averageLoadMs !== undefined && averageLoadMs >= 0);
});
