/*
 * What a client is asked to do in its turn, and how long it took: from the first request until every file is complete.
 */
import { openSender, type Sender, type SenderOptions } from './sender.js';
import type { Scenario } from './sizes.js';
import { Tape, type UploadFile } from './tape.js';
import { errors } from '../errors.js';
import { inLanes, withDeadline } from '../waiting.js';

export interface Turn extends Scenario {
  kind: string;
  /** Begins the names of this turn's files; no other turn has the same. */
  label: string;
  /** Whether some files are read back and compared after the clock has stopped. */
  verify: boolean;
}

export interface Taken {
  seconds: number;
}

const TURN_DEADLINE_MS = 900_000;
const VERIFIED_FILES_AT_MOST = 4;

export class Client {
  readonly #tape: Tape;
  readonly #sender: Sender;

  constructor(options: SenderOptions, longestFileBytes: number) {
    this.#tape = new Tape(longestFileBytes);
    this.#sender = openSender(options, this.#tape);
  }

  async takeTurn(turn: Turn): Promise<Taken> {
    const { chunks } = turn;
    const files = Array.from({ length: turn.files }, (_, index) =>
      this.#tape.file(index, turn.fileBytes, `${turn.label}-${index}`),
    );
    this.#sender.prepare(files, chunks);
    const send = (file: UploadFile): Promise<void> =>
      chunks === undefined ? this.#sender.sendWhole(file) : this.#sender.sendInChunks(file, chunks);

    const startedAt = performance.now();
    const sent = inLanes(turn.filesAtOnce, files.length, (index) => send(files[index]!));
    await withDeadline(sent, TURN_DEADLINE_MS, turn.kind);
    const seconds = (performance.now() - startedAt) / 1_000;

    if (turn.verify) for (const file of files.slice(0, VERIFIED_FILES_AT_MOST)) await this.#verify(file);
    return { seconds };
  }

  async #verify(file: UploadFile): Promise<void> {
    const stored = await this.#sender.readBack(file);
    if (stored.equals(file.bytes)) return;
    throw errors.CONTENT_DIFFERS({
      name: file.name,
      sent: `${file.bytes.length} bytes`,
      stored: `${stored.length} bytes`,
    });
  }
}
