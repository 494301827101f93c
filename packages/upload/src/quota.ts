// The quota of a tenant, for uploads whose length nobody knew when they began: the records set bytes aside for them as they come, so
// that a tenant without room is refused before the bytes are stored and not after all of them are. The records do it in steps as
// long as there is plenty of room, and then chunk by chunk; what really came is checked once more when the upload is completed.
import type { Chunk } from './address.js';
import { runScript, type Engine } from './engine.js';
import type { State } from './state.js';

/** Refuses the chunk with QUOTA_EXCEEDED if the tenant has no room for it. */
export async function claimRoom(
  engine: Engine,
  { id, claimedBytes, receivedBytes, maxTenantBytes }: State,
  { offset, length }: Pick<Chunk, 'offset' | 'length'>,
): Promise<void> {
  const bytes = (offset ?? receivedBytes) + length;
  if (maxTenantBytes === undefined || bytes <= claimedBytes) return;
  const claimed = await engine.records.uploads.claim({ id, bytes, maxBytes: maxTenantBytes });
  await runScript(engine, 'claimed', id, { bytes: claimed });
}
