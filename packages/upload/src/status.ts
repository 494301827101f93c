// What an upload tells about itself, and what may still be said about it after it began.
import { runScript, type Engine } from './engine.js';
import { uploadErrors } from './errors.js';
import { missingRanges, readState, stateOf } from './state.js';
import type { Range, Result, State, Status, UploadRef } from './state.js';
import { askFor } from './work.js';

const listedRanges = 100;

/** For people and programs; everything in it may be shown to the client. */
export interface UploadView {
  id: string;
  nodeId: string;
  drive: string;
  path: string;
  state: Status;
  size: number | null;
  chunkSize: number | null;
  /** A request that brings a multiple of this, at a multiple of this, goes straight to the store. */
  partSize: number;
  receivedBytes: number;
  storedBytes: number;
  /** At most 100; the last one is open when the length is unknown. */
  missing: Range[];
  createdAt: string;
  updatedAt: string;
  expiresAt: string;
  isUpdate: boolean;
  error: { code: string; message: string } | null;
  result: Result | null;
}

export async function status(engine: Engine, upload: UploadRef): Promise<UploadView> {
  return viewOf(engine, await stateOf(engine, upload));
}

export async function viewOf(engine: Engine, state: State): Promise<UploadView> {
  const isOpen = state.status === 'PENDING' || state.status === 'UPLOADING';
  const time = (ms: number): string => new Date(ms).toISOString();
  return {
    id: state.id,
    nodeId: state.nodeId,
    drive: state.drive,
    path: state.path,
    state: state.status,
    size: state.size ?? null,
    chunkSize: state.chunkSize ?? null,
    partSize: state.partBytes,
    receivedBytes: state.receivedBytes,
    storedBytes: state.storedBytes,
    missing: isOpen ? await missingRanges(engine, state, listedRanges) : [],
    createdAt: time(state.createdAt),
    updatedAt: time(state.updatedAt),
    expiresAt: time(state.updatedAt + (isOpen ? state.idleMs : engine.settings.keepMs)),
    isUpdate: state.isUpdate,
    error:
      state.errorCode === undefined ? null : { code: state.errorCode, message: state.errorMessage ?? '' },
    result: state.result ?? null,
  };
}

/** The length or the digest, once they are known. */
export async function declare(
  engine: Engine,
  id: string,
  { size, sha256 }: { size?: number; sha256?: string },
): Promise<void> {
  if (size !== undefined && (!Number.isSafeInteger(size) || size < 0))
    throw uploadErrors.UPLOAD_INVALID({ what: 'size', wanted: 'a whole number from 0 to 2^53−1' });
  if (sha256 !== undefined && !/^[0-9a-f]{64}$/.test(sha256))
    throw uploadErrors.UPLOAD_INVALID({ what: 'sha256', wanted: '64 hexadecimal digits in lower case' });
  if (size !== undefined && size > engine.settings.maxFileBytes)
    throw uploadErrors.FILE_TOO_LARGE({ size, limit: engine.settings.maxFileBytes });
  const seen = size === undefined ? undefined : engine.hashes.digest(id, size);
  const args = {
    id,
    size: size ?? '',
    sha256: sha256 ?? '',
    seen: seen ?? '',
    lookMs: engine.settings.lookAgainMs,
  };
  const [word, allStored, ...ready] = await runScript(engine, 'declare', id, args);
  if (word === 'ENDED') throw await endedError(engine, id);
  if (word === 'LATE') throw uploadErrors.DECLARED_TOO_LATE({ id });
  if (word === 'GONE') throw uploadErrors.UPLOAD_NOT_FOUND({ id });
  if (word === 'TOO_LARGE') throw uploadErrors.FILE_TOO_LARGE({ size: size!, limit: Number(allStored) });
  if (word === 'SIZE') throw uploadErrors.SIZE_CONFLICT({ size: size! });
  if (word === 'DIGEST') throw uploadErrors.DIGEST_CONFLICT();
  if (word !== 'OK' || (ready.length === 0 && allStored !== '1')) return;
  await askFor(engine, id, ready, allStored === '1', await readState(engine, id));
}

async function endedError(engine: Engine, id: string): Promise<Error> {
  const { status: ended = 'ended', errorMessage: reason } = (await readState(engine, id)) ?? {};
  return uploadErrors.UPLOAD_ENDED({ id, state: ended, ...(reason !== undefined && { reason }) });
}
