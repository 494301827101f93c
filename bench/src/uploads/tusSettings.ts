/*
 * How the peer is set up: for speed, by trial (`tuning.ts`; the table is in the README).
 *
 *  - Parts of 32 MiB, 30 at once, were the fastest and cost it the least processor time of all that were tried.
 *  - The SDK's own CRC32 is off: the S3 store gives it streams, which it would have to wrap and frame.
 *  - Its temporary files lie on tmpfs, as everything does in a run.
 *  - Uploads do not expire, which saves it calls; its cache and its locks are in memory, its fastest ones.
 */
export const TUS_PATH = '/files';

export interface TusSettings {
  partBytes: number;
  partsAtOnce: number;
  checksums: 'WHEN_SUPPORTED' | 'WHEN_REQUIRED';
}

export const TUS_SETTINGS: TusSettings = {
  partBytes: 32 * 2 ** 20,
  partsAtOnce: 30,
  checksums: 'WHEN_REQUIRED',
};
