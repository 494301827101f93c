/** The demo on a real server: within seconds there is something of everything that the dashboard shows. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { spawnOwned, startSluice, waitUntil, type SluiceServer } from '@sluice/testbed';

const program = fileURLToPath(new URL('../src/main.js', import.meta.url));
const patienceMs = 120_000;

interface Overview {
  queues: { name: string; paused: boolean; minute: { done: number } }[];
  dead: { letters: number; queues: { queue: string }[] };
  retries: { count: number };
  uploads: { open: number };
}

let server: SluiceServer;

before(async () => {
  server = await startSluice();
});

after(async () => {
  await server?.stop();
});

test('the demo makes queues that succeed, retry and die, uploads in flight and cache traffic', async () => {
  const demo = run([], { SLUICE_DATA_DIR: server.folder, SLUICE_URL: server.url });
  let overview: Overview | undefined;
  // Each of them was seen once; not all at the same moment, since retries and uploads come and go.
  const seen = new Set<string>();
  await waitUntil(
    'work of every kind',
    async () => {
      overview = await ask<Overview>('/v1/overview');
      const { queues, dead, retries, uploads } = overview;
      if (queues.filter(({ minute }) => minute.done > 0).length >= 3) seen.add('done');
      if (retries.count > 0) seen.add('retrying');
      if (dead.queues.length >= 3) seen.add('dead');
      if (uploads.open > 0) seen.add('uploads');
      if (await isCacheRead()) seen.add('cache');
      return seen.size === 5;
    },
    { timeoutMs: patienceMs },
  ).catch((error: unknown) => {
    throw new Error(`only ${[...seen].join(', ')}; the demo said: ${demo.said()}`, { cause: error });
  });
  assert.deepEqual(
    overview!.queues.filter(({ paused }) => paused).map(({ name }) => name),
    ['archive'],
  );
  const { items } = await ask<{ items: unknown[] }>('/v1/schedules');
  assert.equal(items.length, 2);
  demo.end();
  assert.equal(await demo.ended, 0, demo.said());
  assert.match(demo.said(), /Ended; what was made stays\./);
});

test('the demo ends by itself after the seconds that were asked for', async () => {
  const demo = run(['--seconds', '1'], { SLUICE_DATA_DIR: server.folder, SLUICE_URL: server.url });
  assert.equal(await demo.ended, 0, demo.said());
});

test('the demo without a server says how to start one', async () => {
  const demo = run([], { SLUICE_DATA_DIR: '/nowhere' });
  assert.equal(await demo.ended, 2);
  assert.match(demo.said(), /npm start/);
});

test('where no server answers the demo begins nothing, and says where it looked', async () => {
  // Ports below 1024 are not given to tests: nobody comes to listen there meanwhile.
  const nowhere = 'http://127.0.0.1:9';
  const demo = run([], { SLUICE_DATA_DIR: server.folder, SLUICE_URL: nowhere });
  assert.equal(await demo.ended, 2);
  assert.equal(demo.said().trim().split('\n').length, 1, demo.said());
  assert.match(demo.said(), new RegExp(`${nowhere}.*SLUICE_URL`));
});

test('the demo starts nothing when it does not understand what was asked', async () => {
  const demo = run(['--help'], { SLUICE_DATA_DIR: server.folder, SLUICE_URL: server.url });
  assert.equal(await demo.ended, 2);
  assert.match(demo.said(), /--seconds 60/);
});

async function isCacheRead(): Promise<boolean> {
  const cache = await ask<{ total: { nearHits: number; redisHits: number } } | null>('/v1/cache');
  return cache !== null && cache.total.nearHits + cache.total.redisHits > 0;
}

async function ask<T>(path: string): Promise<T> {
  const response = await fetch(server.url + path);
  assert.equal(response.status, 200, path);
  return (await response.json()) as T;
}

function run(args: string[], env: Record<string, string>) {
  const child = spawnOwned(process.execPath, [program, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout!, child.stderr!])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  return {
    said: () => output,
    end: () => child.kill('SIGINT'),
    ended: once(child, 'close').then(([code]) => code as number | null),
  };
}
