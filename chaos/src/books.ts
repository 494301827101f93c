// The books: every key that is in Redis when a run has ended, as it lies there. Read with plain commands, without any of the
// queue's own code, and kept as a file beside the other evidence. Bytes are kept as latin1 text, one character per byte.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import type { RedisServer } from '@sluice/testbed';
import { files } from './evidence.js';

export interface Entry {
  key: string;
  type: string;
  /** -1 when it never expires. */
  ttlMs: number;
  /**
   * A string; the items of a list or set; members and scores of a sorted set in turn; fields and values of a hash in turn;
   * entries of a stream, each as JSON.
   */
  items: string[];
}

const scanCount = 1_000;
/** What PTTL says of a key that is not there. */
const gone = -2;

export async function copyBooks(masters: RedisServer[], folder: string): Promise<void> {
  const entries = (await Promise.all(masters.map(readAll))).flat();
  entries.sort((a, b) => (a.key < b.key ? -1 : 1));
  writeFileSync(join(folder, files.books), JSON.stringify(entries));
}

export function readBooks(folder: string): Entry[] {
  return JSON.parse(readFileSync(join(folder, files.books), 'utf8')) as Entry[];
}

async function readAll(server: RedisServer): Promise<Entry[]> {
  const client = new Redis({ host: server.host, port: server.port, protocol: 2 });
  try {
    const keys = new Set<string>();
    let cursor = '0';
    do {
      const [next, page] = await client.scan(cursor, 'COUNT', scanCount);
      for (const key of page) keys.add(key);
      cursor = next;
    } while (cursor !== '0');
    const entries: Entry[] = [];
    for (const key of keys) {
      const entry = await readOne(client, key);
      if (entry) entries.push(entry);
    }
    return entries;
  } finally {
    client.disconnect();
  }
}

const readers: Record<string, (key: string) => [string, ...(string | number)[]]> = {
  string: (key) => ['GET', key],
  list: (key) => ['LRANGE', key, 0, -1],
  set: (key) => ['SMEMBERS', key],
  zset: (key) => ['ZRANGE', key, 0, -1, 'WITHSCORES'],
  hash: (key) => ['HGETALL', key],
  stream: (key) => ['XRANGE', key, '-', '+'],
};

async function readOne(client: Redis, key: string): Promise<Entry | undefined> {
  const type = await client.type(key);
  const ttlMs = await client.pttl(key);
  // It expired while we read the others.
  if (ttlMs === gone) return undefined;
  const [command, ...args] = readers[type]!(key);
  const reply = (await client.callBuffer(command, ...args)) as Buffer | (Buffer | Buffer[])[];
  return { key, type, ttlMs, items: (Array.isArray(reply) ? reply : [reply]).map(toText) };
}

function toText(item: Buffer | Buffer[]): string {
  if (Buffer.isBuffer(item)) return item.toString('latin1');
  const fields = (item[1] as unknown as Buffer[]).map(String);
  return JSON.stringify(
    Object.fromEntries(fields.flatMap((name, i) => (i % 2 === 0 ? [[name, fields[i + 1]]] : []))),
  );
}
