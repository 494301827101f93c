/**
 * `@sluice/client/node`: the same client with what Node has over a browser. Files are uploaded by their path, checksums are
 * native, and unfinished uploads are remembered in a folder, from which another process continues them.
 */
import { createHash } from 'node:crypto';
import { homedir } from 'node:os';
import { join } from 'node:path';
import * as zlib from 'node:zlib';
import { fileSource } from './fileSource.js';
import { folderStore } from './folderStore.js';
import { checkOptions } from './options.js';
import type { UploadOptions } from './options.js';
import { webPlatform } from './platform.js';
import type { Bytes, Platform } from './platform.js';
import { sourceOf } from './source.js';
import type { UploadInput } from './source.js';
import { Task } from './upload.js';
import type { UploadTask } from './upload.js';

export { SluiceUploadError } from './errors.js';
export { folderStore } from './folderStore.js';
export type { RetryOptions, UploadOptions, UploadProgress, UploadState } from './options.js';
export type { ResumeStore } from './platform.js';
export type { UploadResult } from './protocol.js';
export type { UploadInput } from './source.js';
export type { UploadTask } from './upload.js';

/** Where unfinished uploads are remembered unless the options say otherwise. */
const DEFAULT_FOLDER = ['.sluice', 'uploads'];

/** Uploads the file at a path, or anything that the browser's `upload` accepts. */
export function upload(input: string | URL | UploadInput, options: UploadOptions): UploadTask {
  checkOptions(options);
  const isPath = typeof input === 'string' || input instanceof URL;
  return new Task(isPath ? fileSource(input) : sourceOf(input), options, nodePlatform);
}

const nodePlatform: Platform = {
  digest: nativeDigest(),
  hasher: () => {
    const hash = createHash('sha256');
    return { update: (bytes) => void hash.update(bytes), digest: () => new Uint8Array(hash.digest()) };
  },
  store: () => folderStore(join(homedir(), ...DEFAULT_FOLDER)),
};

/** CRC-32 costs a fraction of SHA-256 and finds what a line does to bytes; Node has it since 20.15. */
function nativeDigest(): Platform['digest'] {
  const { crc32 } = zlib as { crc32?: (bytes: Bytes) => number };
  // Web Crypto computes on another thread.
  if (!crc32) return (bytes) => webPlatform.digest(bytes);
  return async (bytes) => {
    const value = Buffer.alloc(4);
    value.writeUInt32BE(crc32(bytes));
    return `crc32=:${value.toString('base64')}:`;
  };
}
