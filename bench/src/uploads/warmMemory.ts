/*
 * Memory that a turn will write to is touched just before it. On a virtual machine the host may take free memory back, a few
 * seconds after something was deleted, and then every page that the S3 server writes to costs a trip to the host: up to 1.6 s more
 * for a GiB, in some turns and not in others, whoever's turn it is. A file that was written and deleted a moment ago leaves its
 * pages at hand.
 */
import { rmSync, statfsSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { freemem } from 'node:os';
import { dirname, join } from 'node:path';
import { makeOwnedFolder } from '@sluice/testbed';

const PIECE_BYTES = 4 * 2 ** 20;
/** A file in parts is there twice for a moment, when the S3 server puts it together; a server keeps some of it as well. */
const TIMES_STORED = 2.5;
const SHARE_OF_FREE = 1 / 3;
/** What Linux says of a file system that is memory. */
const TMPFS = 0x01021994;

export class WarmMemory {
  readonly #file = join(makeOwnedFolder('warm'), 'touched');
  readonly #piece = Buffer.alloc(PIECE_BYTES, 1);

  /** For a turn that stores so many bytes. On a disk there is nothing to touch. */
  async touch(storedBytes: number): Promise<void> {
    if (statfsSync(dirname(this.#file)).type !== TMPFS) return;
    const wanted = Math.min(storedBytes * TIMES_STORED, freemem() * SHARE_OF_FREE);
    const file = await open(this.#file, 'w');
    try {
      for (let written = 0; written < wanted; written += PIECE_BYTES) await file.write(this.#piece);
    } finally {
      await file.close();
      rmSync(this.#file, { force: true });
    }
  }
}
