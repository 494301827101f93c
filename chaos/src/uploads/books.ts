// Copies everything that is left at the end of a run: both Redis servers, the tables of the records, the objects of the store with
// their digests. Nothing of the upload engine is asked.
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RedisServer } from '@sluice/testbed';
import { files } from './evidence.js';
import type { Books, NodeRow, UploadRow } from './evidence.js';
import type { Stage } from './stage.js';

const shared = 'sluice:{uploads:0}:';
const stream = 'sluice:{events}:events';

export async function copyBooks(stage: Stage, folder: string): Promise<Books> {
  const { postgres, databaseUrl, redis, chunks, store } = stage;
  const ask = (sql: string) => postgres.query(sql, [], databaseUrl);
  const count = async (table: string) => Number((await ask(`SELECT count(*) AS n FROM ${table}`))[0]!['n']);
  const [usage] = await ask(
    'SELECT coalesce(sum(bytes), 0) AS bytes, coalesce(sum(files), 0) AS files FROM usage',
  );
  const budget = (await redis.command('HGETALL', `${shared}budget`)) as string[] | Record<string, string>;
  const books: Books = {
    uploads: (await ask(
      'SELECT id, node_id, path, object_key, status, reason, idempotency_key, result FROM uploads ORDER BY created_at',
    )) as unknown as UploadRow[],
    nodes: (await ask(
      'SELECT id, path, type, status, version, size, object_key, sha256 FROM nodes',
    )) as unknown as NodeRow[],
    drives: (await ask('SELECT id FROM drives')) as unknown as Books['drives'],
    outbox: await count('outbox'),
    doomed: await count('doomed_objects'),
    usage: { bytes: Number(usage!['bytes']), files: Number(usage!['files']) },
    objects: await copyObjects(stage),
    multiparts: (await store.listMultiparts('')).map(({ key }) => key),
    keys: [...(await copyKeys(redis)), ...(await copyKeys(chunks))],
    budget: Array.isArray(budget) ? inPairs(budget) : budget,
    attention: (await redis.command('ZRANGE', `${shared}attention`, 0, -1)) as string[],
    jobs: Number(await redis.command('HLEN', 'sluice:{uploads:0}:jobs')),
    dead: Number(await redis.command('ZCARD', 'sluice:{uploads:0}:dead')),
    events: ((await redis.command('XRANGE', stream, '-', '+')) as [string, string[]][]).map(([, fields]) => {
      const { id = '', topic = '', key = '' } = inPairs(fields);
      return { id, topic, key };
    }),
  };
  writeFileSync(join(folder, files.books), JSON.stringify(books, null, 1));
  return books;
}

function inPairs(flat: string[]): Record<string, string> {
  const pairs: Record<string, string> = {};
  for (let i = 0; i + 1 < flat.length; i += 2) pairs[flat[i]!] = flat[i + 1]!;
  return pairs;
}

async function copyObjects({ store }: Stage): Promise<Books['objects']> {
  const objects: Books['objects'] = [];
  let from: string | undefined;
  do {
    const page = await store.list('', from === undefined ? {} : { from });
    for (const { key } of page.objects) {
      const hash = createHash('sha256');
      let size = 0;
      const { stream: body } = await store.get(key);
      for await (const bytes of body as AsyncIterable<Buffer>) {
        hash.update(bytes);
        size += bytes.length;
      }
      objects.push({ key, size, sha256: hash.digest('hex') });
    }
    from = page.next;
  } while (from !== undefined);
  return objects;
}

async function copyKeys(server: RedisServer): Promise<Books['keys']> {
  const names = (await server.command('KEYS', '*')) as string[];
  const keys: Books['keys'] = [];
  for (const key of names) {
    const type = String(await server.command('TYPE', key));
    keys.push({ key, type, ttlMs: Number(await server.command('PTTL', key)) });
  }
  return keys;
}
