// The server under test: the real program as a process of its own, on a Redis and a PostgreSQL that we can look into, with a key for
// every role, and with something in it, so that requests meet things that exist.
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { makeOwnedFolder, spawnOwned, startPostgres, startRedis, waitUntil } from '@sluice/testbed';
import { admin, configuredKeys, serviceKey, tenants } from './identities.js';

const main = fileURLToPath(new URL('../../../apps/server/dist/src/main.js', import.meta.url));
const handlers = fileURLToPath(new URL('./handlers.js', import.meta.url));
const startTimeoutMs = 120_000;
const keptOutput = 20_000;
const lettersOfEach = 5;

export interface Stage {
  url: string;
  redisUrl: string;
  databaseUrl: string;
  document: unknown;
  /** Bytes of memory that the process has; undefined if it is gone. */
  memory(): Promise<number | undefined>;
  /** What it said last. */
  output(): string;
  hasEnded(): boolean;
  stop(): Promise<void>;
}

export async function raise(): Promise<Stage> {
  const [redis, postgres] = await Promise.all([startRedis(), startPostgres()]);
  const databaseUrl = await postgres.createDatabase();
  const child = spawnOwned(process.execPath, [main], {
    env: {
      PATH: process.env['PATH'],
      SLUICE_DATA_DIR: makeOwnedFolder('fuzz'),
      SLUICE_PORT: '0',
      SLUICE_REDIS_URL: redis.url,
      SLUICE_DATABASE_URL: databaseUrl,
      SLUICE_KEYS: configuredKeys(),
      SLUICE_SERVICE_KEYS: serviceKey,
      SLUICE_HANDLERS: handlers,
      // What is left on the way comes to rest soon, and nobody is told to slow down.
      SLUICE_UPLOAD_SPILL_MS: '1000',
      SLUICE_KEY_RATE: '0',
      SLUICE_FAILURE_RATE: '0',
      SLUICE_LOG_LEVEL: 'error',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout!, child.stderr!])
    stream.on('data', (piece: Buffer) => (output = (output + piece.toString()).slice(-keptOutput)));
  const ended = once(child, 'close');
  let hasEnded = false;
  void ended.then(() => (hasEnded = true));
  const runs = (): boolean => hasEnded || output.includes('Upload a file: ');
  await waitUntil('the server runs or gives up', runs, { timeoutMs: startTimeoutMs });
  if (hasEnded) throw new Error(`the server did not start:\n${output}`);
  const url = /runs at (\S+)/.exec(output)![1]!;
  await furnish(url);
  return {
    url,
    redisUrl: redis.url,
    databaseUrl,
    document: await (await fetch(`${url}/openapi.json`)).json(),
    memory: () => memoryOf(url),
    output: () => output,
    hasEnded: () => hasEnded,
    stop: async () => {
      child.kill('SIGKILL');
      await ended;
      await Promise.all([redis.stop(), postgres.stop()]);
    },
  };
}

/** A few things of each tenant. What this server does not have is left out. */
async function furnish(url: string): Promise<void> {
  for (const tenant of ['default', ...tenants]) {
    const ask = (method: string, path: string, body?: object): Promise<Response> =>
      fetch(url + path, {
        method,
        headers: { ...admin(tenant), 'Content-Type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      });
    await ask('PUT', '/v1/drives/archive');
    await ask('POST', '/v1/nodes', { drive: 'main', path: 'reports/2024' });
    for (const name of ['a.txt', 'reports/b.txt', 'reports/2024/c.txt'])
      await ask('PUT', `/v1/files/main/${name}`, { name });
    await ask('POST', '/v1/uploads', { drive: 'main', path: 'open.bin', size: 1_000, chunkSize: 100 });
    for (let letter = 0; letter < lettersOfEach; letter++)
      await ask('POST', '/v1/queues/letters/jobs', {
        data: { to: tenant },
        id: `${tenant}-${letter}`,
        attempts: 1,
      });
    for (const delayMs of [0, 3_600_000])
      await ask('POST', '/v1/queues/mail/jobs', {
        data: { to: tenant },
        id: `${tenant}-${delayMs}`,
        delayMs,
      });
  }
}

async function memoryOf(url: string): Promise<number | undefined> {
  const text = await fetch(`${url}/metrics`, { headers: admin() }).then(
    (reply) => reply.text(),
    () => '',
  );
  const figure = /^sluice_process_memory_bytes (\S+)/m.exec(text)?.[1];
  return figure === undefined ? undefined : Number(figure);
}
