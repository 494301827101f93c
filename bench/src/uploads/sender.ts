/*
 * The contract of a side's client. It is as cheap as a client can be (a buffer goes to a socket that stays open), of the
 * same kind for every side, and runs in a process of its own, so that it does not compete with the server for a thread.
 *
 * A call returns when the file is complete and can be read: that is where the clock stops.
 */
import { DirectSender, type DirectSettings } from './directSender.js';
import type { S3Access } from './s3Server.js';
import type { SideName } from './side.js';
import type { Chunks } from './sizes.js';
import { SluiceSender } from './sluiceSender.js';
import type { Tape, UploadFile } from './tape.js';
import { TusSender } from './tusSender.js';

export interface Sender {
  /** What a client would know before it sends, such as digests; not timed. */
  prepare(files: readonly UploadFile[], chunks: Chunks | undefined): void;
  /** One request, or as few as the side can do with. */
  sendWhole(file: UploadFile): Promise<void>;
  sendInChunks(file: UploadFile, chunks: Chunks): Promise<void>;
  /** The file as a reader gets it; not timed. */
  readBack(file: UploadFile): Promise<Buffer>;
}

export interface SenderOptions {
  side: SideName;
  s3: S3Access;
  /** The server under test; empty for `direct`. */
  url: string;
  /** Other settings of `direct` than the best known. */
  direct?: DirectSettings;
}

export function openSender({ side, s3, url, direct }: SenderOptions, tape: Tape): Sender {
  switch (side) {
    case 'sluice':
      return new SluiceSender(url, tape);
    case 'tus':
      return new TusSender(url, s3);
    case 'direct':
      return new DirectSender(s3, direct);
  }
}
