// @sluice/upload: takes files in: chunks in any order, verified, completed exactly once.
export { Uploads, defaultSettings } from './uploads.js';
export type { UploadsOptions } from './uploads.js';
export type { Hooks, Settings } from './engine.js';
export type { NewUpload } from './initiate.js';
export type { ChunkAddress } from './address.js';
export type { Source } from './body.js';
export { parseDigest } from './digest.js';
export type { Algorithm, Digest } from './digest.js';
export type { Receipt } from './receive.js';
export type { Progress } from './progress.js';
export type { Range, Result, State, Status, UploadRef } from './state.js';
export type { UploadView } from './status.js';
export type { StoredFile } from './whole.js';
export { isUploadId } from './keys.js';
export { uploadErrors } from './errors.js';
export { completionErrors } from './completionErrors.js';
