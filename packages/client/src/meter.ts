/**
 * The figures of an upload as its user sees them. They never go back: when the server loses bytes it had only buffered, they
 * stand still until the loss is made good. Only an upload that must start anew starts from zero.
 */
import type { UploadProgress, UploadState } from './options.js';

export class Meter {
  #state: UploadState = 'starting';
  #sentBytes = 0;
  #ackedBytes = 0;
  #inFlightBytes = 0;
  #size: number | null;
  readonly #tell: ((progress: UploadProgress) => void) | undefined;

  constructor(size: number | null, tell: ((progress: UploadProgress) => void) | undefined) {
    this.#size = size;
    this.#tell = tell;
  }

  get progress(): UploadProgress {
    const done = this.#state === 'done';
    const share = this.#size === null ? null : this.#size === 0 ? 0 : this.#ackedBytes / this.#size;
    return {
      sentBytes: this.#sentBytes,
      ackedBytes: this.#ackedBytes,
      size: this.#size,
      // A hundred is said once, when the file is stored.
      percent: done ? 100 : share === null ? null : Math.min(99, Math.floor(share * 100)),
      state: this.#state,
    };
  }

  enter(state: UploadState): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#report();
  }

  learnSize(size: number): void {
    this.#size = size;
  }

  /** A request with so many bytes begins; call the result when it has ended, however it ended. */
  sending(bytes: number): () => void {
    this.#inFlightBytes += bytes;
    this.#raise(this.#ackedBytes);
    return () => {
      this.#inFlightBytes -= bytes;
    };
  }

  acked(totalBytes: number): void {
    this.#raise(totalBytes);
  }

  startAnew(): void {
    this.#sentBytes = 0;
    this.#ackedBytes = 0;
    this.enter('starting');
  }

  #raise(ackedBytes: number): void {
    const most = this.#size ?? Number.MAX_SAFE_INTEGER;
    const acked = Math.min(most, Math.max(this.#ackedBytes, ackedBytes));
    const sent = Math.min(most, Math.max(this.#sentBytes, acked + this.#inFlightBytes));
    if (acked === this.#ackedBytes && sent === this.#sentBytes) return;
    this.#ackedBytes = acked;
    this.#sentBytes = sent;
    this.#report();
  }

  #report(): void {
    try {
      this.#tell?.(this.progress);
    } catch (mistake) {
      // A listener's mistake is its own: it surfaces like that of any event listener, and the upload goes on.
      queueMicrotask(() => {
        throw mistake;
      });
    }
  }
}
