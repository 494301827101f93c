// @sluice/client: uploads files from browsers and Node: in parallel, resumable, verified.
export { upload, type UploadTask } from './upload.js';
export { SluiceUploadError } from './errors.js';
export type { RetryOptions, UploadOptions, UploadProgress, UploadState } from './options.js';
export type { ResumeStore } from './platform.js';
export type { UploadResult } from './protocol.js';
export type { UploadInput } from './source.js';
