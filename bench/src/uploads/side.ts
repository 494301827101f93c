/*
 * The sides of the comparison. `sluice` and `tus` are servers between the client and S3, each in a process of its own;
 * `direct` is a client that talks to S3 itself and shows what the machine and the S3 server can do at all.
 */
import type { S3Access } from './s3Server.js';

export const SIDES = ['sluice', 'tus', 'direct'] as const;
export type SideName = (typeof SIDES)[number];
export type PerSide<T> = Partial<Record<SideName, T>>;

/** A running server under test, and the processes whose cost is its own. */
export interface UploadServer {
  /** Where its HTTP begins, without a slash at the end. */
  readonly url: string;
  /** The process that receives the bytes. */
  readonly pid: number;
  /** The Redis servers that work for it; their processor time is reported apart. */
  readonly redisPids: readonly number[];
  /** The Redis that keeps chunks on their way, and how many bytes the server lets it hold. */
  readonly chunks?: { readonly redisUrl: string; readonly budgetBytes: number };
  stop(): Promise<void>;
}

export type StartUploadServer = (options: { s3: S3Access }) => Promise<UploadServer>;

/** The servers a run can start. A side that has none is left out of the run; `direct` needs none. */
export type UploadServers = Partial<Record<'sluice' | 'tus', StartUploadServer>>;
