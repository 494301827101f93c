// The state of the server, straight from its database and its Redis, in digests that can be compared: every table, and of Redis what jobs,
// queues, schedules and uploads are made of. What changes while nobody asks anything is not looked at: it proves nothing.
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import type { Stage } from './stage.js';

export type State = Map<string, string>;

/** Emptied by the server itself, when it gets to it. */
const passing = new Set(['outbox', 'doomed_objects']);
/** Columns that say when something was used, which is no change. */
const usage = ['last_used_at', 'used_at', 'last_seen_at'];
const redisKeys =
  /:(jobs|inbox|wait:\d+|delayed|blocked|dead|dead-info|schedules|cfg|groups|chains|queues)$|:state:[^:]+$/;
/** Queues with workers: jobs become due, are retried and end whenever their time comes. Only the rules of these are compared. */
const workedOn = /\{(sluice\.webhooks|sluice\.operations|uploads|default|letters):/;
/** Longer than the first tries again of a job take. */
const quietMs = 3_500;
const mostLooks = 20;

/** Waits until nothing moves any more, as far as it ever comes to rest. */
export async function settled(stage: Stage): Promise<State> {
  let before = await stateOf(stage);
  for (let look = 1; ; look++) {
    await sleep(quietMs);
    const now = await stateOf(stage);
    const restless = differences(before, now);
    if (restless.length === 0) return now;
    if (look === mostLooks) {
      for (const name of restless) now.set(name, 'restless');
      return now;
    }
    before = now;
  }
}

/** The names of what differs. */
export function differences(before: State, now: State): string[] {
  const names = new Set([...before.keys(), ...now.keys()]);
  return [...names]
    .filter((name) => before.get(name) !== now.get(name) && before.get(name) !== 'restless')
    .sort();
}

export async function stateOf({ databaseUrl, redisUrl }: Stage): Promise<State> {
  return new Map([...(await tablesOf(databaseUrl)), ...(await keysOf(redisUrl))]);
}

async function tablesOf(databaseUrl: string): Promise<[string, string][]> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { rows: tables } = await client.query<{ schema: string; name: string }>(
      `SELECT table_schema AS schema, table_name AS name FROM information_schema.tables
        WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')`,
    );
    const digests: [string, string][] = [];
    for (const { schema, name } of tables.filter((table) => !passing.has(table.name))) {
      const { rows } = await client.query<{ digest: string }>(
        `SELECT count(*) || ' ' || coalesce(md5(string_agg(line, ',' ORDER BY line)), '') AS digest
           FROM (SELECT (to_jsonb(t) - $1::text[])::text AS line FROM "${schema}"."${name}" t) lines`,
        [usage],
      );
      digests.push([`table ${name}`, rows[0]!.digest]);
    }
    return digests;
  } finally {
    await client.end();
  }
}

async function keysOf(redisUrl: string): Promise<[string, string][]> {
  const redis = new Redis(redisUrl);
  try {
    const digests: [string, string][] = [];
    for await (const keys of redis.scanStream({ count: 1_000 })) {
      const wanted = (keys as string[]).filter((key) => isTelling(key));
      const dumps = await Promise.all(wanted.map((key) => contentOf(redis, key)));
      dumps.forEach((dump, index) => digests.push([`key ${wanted[index]}`, digest(dump)]));
    }
    return digests;
  } finally {
    redis.disconnect();
  }
}

function isTelling(key: string): boolean {
  return redisKeys.test(key) && (key.endsWith(':cfg') || !workedOn.test(key));
}

/** Of a queue's settings only its rules: the rest is what its workers note for each other. */
function contentOf(redis: Redis, key: string): Promise<Buffer | null> {
  return key.endsWith(':cfg') ? redis.hgetBuffer(key, 'rules') : redis.dumpBuffer(key);
}

function digest(dump: Buffer | null): string {
  return dump === null ? '' : createHash('sha256').update(dump).digest('hex');
}
