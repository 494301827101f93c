// A process that takes one upload through, or ends it, and is killed at one fail point on the way. `crash.test.ts` starts it and goes
// on where it stopped. Its only argument is a JSON object; it prints the id of its upload as soon as it knows it.
import { armFailPoints } from '@sluice/base';
import { openRecords } from '@sluice/records';
import { RedisLink } from '@sluice/redis';
import { DiskStore } from '@sluice/store';
import { waitUntil } from '@sluice/testbed';
import { setTimeout as pause } from 'node:timers/promises';
import { parseDigest, Uploads, type Settings } from '../src/index.js';
import { keysOf } from '../src/keys.js';
import { begin, bytesOf, ended, send, sendRange, sha256, stream, tenant, wasQuietFor } from './harness.js';

export interface CrashPlan {
  point: string;
  act: 'upload' | 'staged' | 'file' | 'cancel' | 'expire';
  redis: string;
  database: string;
  folder: string;
  settings: Partial<Settings>;
  size: number;
}

const plan = JSON.parse(process.argv[2]!) as CrashPlan;
const bytes = bytesOf(plan.size);
const uploads = new Uploads({
  redis: plan.redis,
  records: await openRecords({ url: plan.database }),
  storeOf: new DiskStore({ folder: plan.folder, fsync: false }),
  settings: plan.settings,
  hooks: { afterComplete: () => {} },
});
await uploads.start();
const arm = (): void => armFailPoints((name) => (name === plan.point ? 'kill' : undefined));
if (plan.act !== 'staged') arm();
if (plan.act === 'file') {
  await uploads.store({ tenant, drive: 'main', path: 'f' }, stream(bytes), bytes.length);
} else {
  const { id } = await begin(uploads, 'f', { size: bytes.length, idempotencyKey: 'once' });
  process.stdout.write(`${id}\n`);
  // Whole parts, a tail that waits for its rest until it is staged, and the rest.
  const end = plan.act === 'upload' || plan.act === 'staged' ? bytes.length : bytes.length - 100_000;
  await sendRange(uploads, id, bytes, 0, 2_300_000);
  if (plan.act === 'upload' && plan.point.startsWith('spill')) await pause(20_000);
  if (plan.act === 'staged') {
    // While it is quiet somebody else gets its room.
    const { id: other } = await begin(uploads, 'other', { size: bytes.length, idempotencyKey: 'other' });
    for (;;) {
      const isIn = await sendRange(uploads, other, bytes, 0, 1_000).catch(() => undefined);
      if (isIn) break;
      await uploads.tend();
      await pause(50);
    }
    arm();
  }
  const digest = parseDigest(
    `sha-256=:${Buffer.from(sha256(bytes.subarray(2_300_000, end)), 'hex').toString('base64')}:`,
  );
  await send(uploads, id, { offset: 2_300_000 }, bytes.subarray(2_300_000, end), digest);
  if (plan.act === 'cancel') await uploads.cancel(id);
  if (plan.act === 'expire') {
    const link = new RedisLink(plan.redis);
    const keys = () => keysOf(plan.settings.prefix!, 0, id);
    // Again and again: a part that is stored meanwhile is a sign of life.
    await waitUntil('it expires', async () => {
      await wasQuietFor({ link, keys }, id, 86_400_000);
      return (await uploads.status(id)).state === 'EXPIRED';
    });
    link.close();
  }
  await ended(uploads, id);
  await pause(10_000);
}
// The point was not on the way.
await pause(500);
process.exit(0);
