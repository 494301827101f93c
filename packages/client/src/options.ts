/** What `upload` accepts, and the check that refuses nonsense before the first request. */
import { uploadError } from './errors.js';
import type { ResumeStore } from './platform.js';

export interface UploadOptions {
  /** Where the server is: `https://files.example.com`. In a browser `''` is the page's own host. */
  url: string;
  drive: string;
  /** The file's path in the drive, with slashes: `letters/ada.pdf`. */
  path: string;
  /** An upload token. A function is asked for one at the first request, and again when the server calls the last one stale. */
  token?: string | (() => string | Promise<string>);
  /** A tenant key. It opens everything of the tenant, so it does not belong into a browser. */
  key?: string;
  /** The server chooses unless stated. */
  chunkSize?: number;
  /** Chunks in flight at once, at most; 3. */
  parallel?: number;
  /** The digest of the whole file, for the server to check: in hex, or `auto` to compute it before the first byte is sent. */
  sha256?: string;
  contentType?: string;
  metadata?: Record<string, string>;
  /** What to do when the path is taken; the server replaces unless stated. */
  ifExists?: 'replace' | 'fail';
  /** Where the unfinished upload is remembered; `false` remembers nothing. */
  resume?: ResumeStore | false;
  /** The same key is the same upload. Made and remembered by the client unless stated. */
  idempotencyKey?: string;
  retry?: RetryOptions;
  fetch?: typeof globalThis.fetch;
  /** Stops the upload without deleting it: started again, it continues. */
  signal?: AbortSignal;
  onProgress?: (progress: UploadProgress) => void;
}

export interface RetryOptions {
  /** Failures in a row, without any progress between them, after which the upload gives up; 20. */
  attempts?: number;
  /** The wait after the first failure is drawn from 0 to this, and doubles with each further one; 500 ms. */
  baseMs?: number;
  /** No wait is longer, unless the server asks for it; 30 s. */
  capMs?: number;
}

export type UploadState =
  | 'starting'
  | 'hashing'
  | 'verifying'
  | 'uploading'
  | 'completing'
  | 'paused'
  | 'done'
  | 'failed'
  | 'cancelled';

export interface UploadProgress {
  /** Handed to the network, acknowledged or not. */
  sentBytes: number;
  /** Acknowledged by the server. */
  ackedBytes: number;
  /** `null` while the length of a stream is unknown. */
  size: number | null;
  /** 0 to 100, and 100 only when the file is stored; `null` while the size is unknown. */
  percent: number | null;
  state: UploadState;
}

export const DEFAULT_PARALLEL = 3;
export const MAX_PARALLEL = 64;

export function checkOptions(options: UploadOptions): void {
  const { url, drive, path, chunkSize, parallel, sha256, retry = {} } = options;
  demand(isUrl(url), `url must be an address such as https://host, not ${JSON.stringify(url)}.`);
  demand(isText(drive), 'drive must be the name of a drive.');
  demand(isText(path), 'path must be the path of the file in the drive.');
  demand(isCount(chunkSize), 'chunkSize must be a whole number of bytes, 1 or more.');
  demand(isCount(parallel, MAX_PARALLEL), `parallel must be a whole number from 1 to ${MAX_PARALLEL}.`);
  demand(
    sha256 === undefined || sha256 === 'auto' || /^[0-9a-f]{64}$/i.test(sha256),
    "sha256 must be 64 hexadecimal digits, or 'auto'.",
  );
  demand(isCount(retry.attempts), 'retry.attempts must be a whole number, 1 or more.');
  for (const ms of [retry.baseMs, retry.capMs]) {
    demand(
      ms === undefined || (Number.isFinite(ms) && ms >= 0),
      'retry.baseMs and retry.capMs are milliseconds.',
    );
  }
}

function demand(holds: boolean, why: string): void {
  if (!holds) throw uploadError('OPTION_INVALID', why);
}

function isUrl(url: unknown): boolean {
  const page = (globalThis as { location?: { href: string } }).location?.href;
  if (typeof url !== 'string') return false;
  try {
    return /^https?:$/.test(new URL(url, page).protocol);
  } catch {
    return false;
  }
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

function isCount(value: unknown, most = Number.MAX_SAFE_INTEGER): boolean {
  return value === undefined || (Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= most);
}
