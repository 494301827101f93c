// Objects that no file refers to any more: replaced versions, and what uploads left that ended without a file. The records list them
// in the transaction that makes them useless, and whoever deletes them says so afterwards; deleting twice does no harm.
import { isSluiceError } from '@sluice/base';
import type { Engine } from './engine.js';

const atOnce = 100;
/** Who has just begun to read a file that is replaced now may finish. */
const longestGraceMs = 60_000;

/** One round. Resolves with the number of objects that were deleted. */
export async function deleteDoomed(engine: Engine): Promise<number> {
  const { records, settings, logger } = engine;
  const before = Date.now() - Math.min(longestGraceMs, settings.idleMs);
  const deleted: string[] = [];
  for (const { objectKey, bucket, driveId, since } of await records.doomed.list(atOnce)) {
    if (since.getTime() > before) break;
    try {
      await engine.storeOf({ bucket, prefix: '' }).delete(objectKey);
      deleted.push(objectKey);
    } catch (error) {
      if (!isSluiceError(error)) throw error;
      // It stays on the list; the others need not wait for it.
      logger.warn(
        { err: error, objectKey, drive: driveId },
        'an object that nobody needs could not be deleted yet',
      );
    }
  }
  await records.doomed.forget(deleted);
  return deleted.length;
}
