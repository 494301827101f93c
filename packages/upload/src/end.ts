// The other ends of an upload: FAILED, CANCELLED, EXPIRED. The records decide first, because a completion may be under way: its
// transaction finds the upload ended and changes nothing, or was there before, and then it is completed. Before that the state says
// what is about to happen, so that whoever looks at it goes on if this process dies. After that the state follows, and what the upload left in the store and in Redis is removed by a job.
import { failPoint, isSluiceError, type SluiceError } from '@sluice/base';
import type { UploadRecord, UploadResult } from '@sluice/records';
import { finishCompleted, resultOf } from './complete.js';
import { runScript, type Engine } from './engine.js';
import { uploadErrors } from './errors.js';
import { readAttempts, readState, type State } from './state.js';
import { ask } from './work.js';
import { dropFrames } from './writePart.js';

type Remains = Pick<State, 'id' | 'status' | 'objectKey' | 'bucket' | 'drivePrefix' | 'tenant' | 'createdAt'>;
export type End = 'FAILED' | 'CANCELLED' | 'EXPIRED';

export async function cancel(engine: Engine, id: string): Promise<State> {
  const state = await readState(engine, id);
  if (!state) throw uploadErrors.UPLOAD_NOT_FOUND({ id });
  if (state.status === 'COMPLETED') throw uploadErrors.UPLOAD_ENDED({ id, state: 'COMPLETED' });
  await end(engine, id, 'CANCELLED', 'CANCELLED', 'it was cancelled');
  const after = (await readState(engine, id)) ?? state;
  if (after.status === 'COMPLETED') throw uploadErrors.UPLOAD_ENDED({ id, state: 'COMPLETED' });
  return after;
}

export function fail(engine: Engine, id: string, error: SluiceError): Promise<void> {
  engine.metrics.failed();
  return end(engine, id, 'FAILED', error.code, error.message);
}

export function expire(engine: Engine, id: string): Promise<void> {
  return end(engine, id, 'EXPIRED', 'EXPIRED', 'nothing arrived for too long');
}

export async function end(
  engine: Engine,
  id: string,
  status: End,
  code: string,
  reason: string,
): Promise<void> {
  const { keepMs, lookAgainMs: lookMs } = engine.settings;
  await runScript(engine, 'ending', id, { id, status, code, reason, lookMs });
  failPoint('end.announced');
  const upload = await recordEnd(engine, id, status, reason);
  failPoint('end.recorded');
  // Completed in the meantime: the state follows the records.
  if (upload.status === 'COMPLETED') return finishFromRecords(engine, id, upload.result);
  const [word, ...left] = await runScript(engine, 'finish', id, {
    id,
    status: upload.status,
    fields: JSON.stringify(['error_code', code, 'error_message', reason]),
    keepMs,
    lookMs: 0,
  });
  failPoint('end.finished');
  engine.hashes.end(id);
  if (word === 'GONE') return;
  await dropFrames(engine, id, left);
  await ask(engine, { do: 'tend', upload: id }, upload);
}

/** A small file that was noted and not recorded is buried, so that its transaction cannot come late. */
async function recordEnd(
  engine: Engine,
  id: string,
  status: End,
  reason: string,
): Promise<Pick<UploadRecord, 'status' | 'tenant' | 'owner'> & { result?: UploadResult }> {
  const { uploads } = engine.records;
  try {
    return (await uploads.end({ id, status, reason })).upload;
  } catch (error) {
    const state = await readState(engine, id);
    if (!isSluiceError(error, 'UPLOAD_NOT_FOUND') || !state) throw error;
    const { tenant, drive, path, objectKey } = state;
    try {
      return await uploads.bury({ id, tenant, drive, path, objectKey, reason });
    } catch (burying) {
      // The drive was removed: nothing can come late into it, and what is left of the file goes as always.
      if (isSluiceError(burying, 'DRIVE_NOT_FOUND')) return { status, tenant, owner: state.owner };
      throw burying;
    }
  }
}

/** A completion that died between the records and the state. */
async function finishFromRecords(
  engine: Engine,
  id: string,
  result: UploadResult | undefined,
): Promise<void> {
  const state = await readState(engine, id);
  if (state && result) await finishCompleted(engine, state, resultOf(result));
}

/** Removes what an ended upload left in Redis and in the store. Only what carries its id is ours, and all of that is. */
export async function cleanUp(engine: Engine, state: Remains): Promise<void> {
  const store = engine.storeOf({ bucket: state.bucket, prefix: state.drivePrefix });
  await dropFrames(engine, state.id, await readAttempts(engine, state.id, 'all'));
  const folder = state.objectKey.slice(0, state.objectKey.lastIndexOf('/') + 1);
  // By the whole key, which all of them have: some servers (MinIO) list no others.
  for (const multipart of await store.listMultiparts(state.objectKey)) await store.abortMultipart(multipart);
  failPoint('clean.aborted');
  const kept = state.status === 'COMPLETED' ? await keptKey(engine, state) : undefined;
  let from: string | undefined;
  do {
    const page = await store.list(folder, { shallow: true, ...(from !== undefined && { from }) });
    const keys = page.objects.map(({ key }) => key).filter((key) => key !== kept);
    const files = await filesAmong(engine, state, keys);
    for (const key of keys) if (!files.has(key)) await store.delete(key);
    from = page.next;
  } while (from !== undefined);
  failPoint('clean.deleted');
}

/** The object that the records point to. */
async function keptKey(engine: Engine, { id, tenant, objectKey }: Remains): Promise<string> {
  return (await engine.records.uploads.get(tenant, id))?.objectKey ?? objectKey;
}

/**
 * The records forget how a file came, and a Redis that is restored from a backup may be older than that: then an upload that is open here
 * was completed long ago. Of one that began so long ago what is a file stays.
 */
async function filesAmong(
  { records, settings }: Engine,
  { createdAt }: Remains,
  keys: string[],
): Promise<Set<string>> {
  // Half of the time, because it is measured by several clocks.
  const isOld = createdAt < Date.now() - settings.recordKeepMs / 2;
  return isOld ? records.nodes.objectsInUse(keys) : new Set();
}
