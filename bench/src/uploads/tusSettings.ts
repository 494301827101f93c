/*
 * How the peer is set up: for speed, by trial (`npm run bench -- uploadsTuning`; the table is in the README).
 *
 *  - Parts of … MiB and … of them at once were the fastest on the machine of the saved result; differences …
 *  - The SDK's own CRC32 is off: the S3 store gives it streams, whose checksum it computes in JavaScript.
 *  - Its temporary files lie on tmpfs, as everything does in a run (`memoryDisk.ts`).
 *  - Uploads do not expire, which saves it calls; its cache and its locks are in memory, its fastest ones.
 */
export const TUS_PATH = '/files';

export interface TusSettings {
  partBytes: number;
  partsAtOnce: number;
  checksums: 'WHEN_SUPPORTED' | 'WHEN_REQUIRED';
}

export const TUS_SETTINGS: TusSettings = {
  partBytes: 8 * 2 ** 20,
  partsAtOnce: 60,
  checksums: 'WHEN_REQUIRED',
};
