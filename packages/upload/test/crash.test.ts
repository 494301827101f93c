// A process dies between two steps of an upload, at every place where there is a fail point. Another one goes on, the client sends
// what is missing, and the end is the same as if nothing had happened.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { after, describe, test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { waitUntil } from '@sluice/testbed';
import { priceOf } from '../src/engine.js';
import type { CrashPlan } from './crashChild.js';
import {
  begin,
  bytesOf,
  contentOf,
  mebibyte,
  nothingLeftBut,
  objectOf,
  quick,
  sendMissing,
  servers,
  sha256,
  startService,
  stopServers,
  stream,
  tenant,
  type Service,
} from './harness.js';

const sources = new URL('../src/', import.meta.url);
const points = readdirSync(fileURLToPath(sources))
  .filter((name) => name.endsWith('.js'))
  .flatMap((name) => [...readFileSync(new URL(name, sources), 'utf8').matchAll(/failPoint\('(\w+\.\w+)'\)/g)])
  .map(([, name]) => name!);
const wholeSize = 3_400_000;
const bytes = bytesOf(wholeSize);
const settings = { ...quick, lookAgainMs: 200, attemptMs: 4_000, leaseMs: 4_000, spillAfterMs: 400 };

after(stopServers);

/** The service lives on with workers; the child has died with the signal of its fail point. */
async function crash(
  t: TestContext,
  point: string,
  act: CrashPlan['act'],
  more = {},
  size = wholeSize,
): Promise<Service> {
  const service = await startService(t, { settings: { ...settings, ...more }, workers: 0 });
  const plan: CrashPlan = {
    ...{ point, act, size, redis: service.redis.url, database: service.database, folder: service.folder },
    settings: { ...settings, ...more, prefix: service.prefix },
  };
  const program = fileURLToPath(new URL('crashChild.js', import.meta.url));
  const child = spawn(process.execPath, [program, JSON.stringify(plan)], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  assert.deepEqual({ code, signal }, { code: null, signal: 'SIGKILL' }, `${point} is not on the way`);
  return service;
}

async function oneFile(service: Service): Promise<void> {
  const { database } = service;
  const { postgres } = await servers();
  assert.deepEqual(await contentOf(service, 'f'), bytes);
  const nodes = await postgres.query(`SELECT status FROM nodes WHERE path = 'f'`, [], database);
  assert.deepEqual(nodes, [{ status: 'ACTIVE' }]);
  const events = await postgres.query(
    `SELECT event_id FROM outbox WHERE topic LIKE '%uploads.completed'`,
    [],
    database,
  );
  assert.equal(events.length, 1);
}

/** Looks after what is due, oftener than it happens by itself. */
function tending(t: TestContext, uploads: Service['uploads']): void {
  const timer = setInterval(() => void uploads.tend().catch(() => {}), 100);
  t.after(() => clearInterval(timer));
}

const whole = points.filter((point) => point.startsWith('whole.'));
const ends = points.filter((point) => point.startsWith('end.') || point.startsWith('clean.'));
const uploading = points.filter((point) => !whole.includes(point) && !point.startsWith('end.'));

describe('a process that dies in the middle', { concurrency: 4 }, () => {
  for (const point of uploading) {
    test(`after "${point}": the upload is completed once by others, and nothing is left over`, async (t) => {
      const service = await crash(t, point, 'upload');
      const announced: string[] = [];
      const hooks = { afterComplete: (upload: { id: string }) => void announced.push(upload.id) };
      const uploads = await service.another({ workers: 8, hooks });
      tending(t, uploads);
      const { id } = await begin(uploads, 'f', { size: wholeSize, idempotencyKey: 'once' });
      const { state, result } = await sendMissing(uploads, id, bytes);
      assert.equal(state, 'COMPLETED');
      assert.equal(result!.sha256, sha256(bytes));
      await oneFile(service);
      await nothingLeftBut(service, [await objectOf(service, 'f')]);
      // Later the first process may have told the owner itself.
      if (!/^(clean|complete\.finished)/.test(point))
        await waitUntil('the owner is told', () => announced.includes(id));
    });
  }

  test('after "receive.buffered" of bytes that were staged for want of room: nothing is left of them', async (t) => {
    const room = { budgetBytes: priceOf(mebibyte), uploadBudgetBytes: priceOf(mebibyte) };
    const service = await crash(t, 'receive.buffered', 'staged', room);
    const uploads = await service.another({ workers: 8 });
    tending(t, uploads);
    const { id } = await begin(uploads, 'f', { size: wholeSize, idempotencyKey: 'once' });
    const { state } = await sendMissing(uploads, id, bytes);
    assert.equal(state, 'COMPLETED');
    const { id: other } = await begin(uploads, 'other', { size: wholeSize, idempotencyKey: 'other' });
    await uploads.cancel(other);
    await oneFile(service);
    await nothingLeftBut(service, [await objectOf(service, 'f')]);
  });

  for (const point of ends) {
    for (const act of ['cancel', 'expire'] as const) {
      test(`after "${point}" of ${act}: the upload ends all the same, and leaves nothing`, async (t) => {
        const service = await crash(t, point, act);
        const uploads = await service.another({ workers: 8 });
        tending(t, uploads);
        await nothingLeftBut(service, []);
        const { postgres } = await servers();
        const rows = await postgres.query('SELECT status FROM uploads', [], service.database);
        assert.deepEqual(rows, [{ status: act === 'cancel' ? 'CANCELLED' : 'EXPIRED' }]);
      });
    }
  }

  for (const [point, size] of whole.flatMap((name) => [[name, wholeSize] as const, [name, 0] as const])) {
    const file = size === 0 ? 'an empty file' : 'a file';
    test(`after "${point}": ${file} in one request is there or not, and sent again it is there once`, async (t) => {
      const content = bytes.subarray(0, size);
      const more = { wholeBytes: 2 * wholeSize };
      const service = await crash(t, point, 'file', more, size);
      const announced: string[] = [];
      const hooks = { afterComplete: (upload: { id: string }) => void announced.push(upload.id) };
      const uploads = await service.another({ workers: 8, hooks });
      tending(t, uploads);
      // Nobody waits an hour for the note here.
      const { attention } = service.keys();
      const due = (await service.link.call('ZRANGE', [attention, 0, -1])) as Buffer[];
      for (const id of due) await service.link.call('HSET', [service.keys(String(id)).state, 'idle_ms', 1]);
      for (const id of due) await service.link.call('ZADD', [attention, 1, id]);
      await uploads.store({ tenant, drive: 'main', path: 'f' }, stream(content), size);
      await waitUntil('the note is gone', async () => {
        const left = (await service.link.call('ZCARD', [attention])) as number;
        return left === 0;
      });
      assert.deepEqual(await contentOf(service, 'f'), content);
      await nothingLeftBut(service, [await objectOf(service, 'f')]);
      // What was recorded is told of, although nobody lives who stored it.
      const recorded = point === 'whole.recorded' ? due.map(String) : [];
      await waitUntil('the owner is told', () => recorded.every((id) => announced.includes(id)));
    });
  }
});
