/**
 * `upload` and the task it returns: what its user may ask of a running upload. The task decides when the session (session.ts)
 * runs; a pause is a run that was cut off, and resuming is another run.
 */
import { SluiceUploadError, uploadError } from './errors.js';
import { Meter } from './meter.js';
import { checkOptions } from './options.js';
import type { UploadOptions, UploadProgress } from './options.js';
import type { Platform } from './platform.js';
import { webPlatform } from './platform.js';
import type { UploadResult } from './protocol.js';
import { Session } from './session.js';
import { sourceOf } from './source.js';
import type { Source, UploadInput } from './source.js';

export interface UploadTask {
  /** Known from the first answer of the server on. */
  readonly uploadId: string | null;
  readonly progress: UploadProgress;
  /** Resolves when the file is stored; rejects with a SluiceUploadError. */
  readonly done: Promise<UploadResult>;
  /** Ends the requests in flight at once. Nothing is lost but what was on the wire. */
  pause(): void;
  resume(): void;
  /** Stops, and deletes the upload on the server. False if it was too late: then `done` has the result. */
  cancel(): Promise<boolean>;
}

export function upload(input: UploadInput, options: UploadOptions): UploadTask {
  checkOptions(options);
  return new Task(sourceOf(input), options, webPlatform);
}

export class Task implements UploadTask {
  readonly done: Promise<UploadResult>;
  readonly #session: Session;
  readonly #source: Source;
  readonly #meter: Meter;
  readonly #signal: AbortSignal | undefined;
  #wish: 'run' | 'pause' | 'cancel' | 'abort' = 'run';
  #run = new AbortController();
  #wake: () => void = () => {};

  constructor(source: Source, options: UploadOptions, platform: Platform) {
    this.#source = source;
    this.#meter = new Meter(source.size, options.onProgress);
    this.#session = new Session(options, source, platform, this.#meter);
    this.#signal = options.signal;
    this.#signal?.addEventListener('abort', this.#abort);
    if (this.#signal?.aborted) this.#wish = 'abort';
    // The first step is taken after the caller has got the task.
    this.done = Promise.resolve().then(() => this.#live());
    // Whoever cancels and walks away has not forgotten an error; whoever looks at `done` gets it all the same.
    this.done.catch(() => {});
  }

  get uploadId(): string | null {
    return this.#session.uploadId;
  }

  get progress(): UploadProgress {
    return this.#meter.progress;
  }

  pause(): void {
    if (this.#wish !== 'run' || this.#isOver()) return;
    this.#turn('pause');
    this.#meter.enter('paused');
  }

  resume(): void {
    if (this.#wish === 'pause') this.#turn('run');
  }

  async cancel(): Promise<boolean> {
    if (this.#isOver()) return this.progress.state === 'cancelled';
    this.#turn('cancel');
    try {
      await this.done;
      return false;
    } catch (failure) {
      if (failure instanceof SluiceUploadError && failure.code === 'CANCELLED') return true;
      throw failure;
    }
  }

  readonly #abort = (): void => {
    if (this.#wish !== 'cancel') this.#turn('abort');
  };

  #isOver(): boolean {
    return ['done', 'failed', 'cancelled'].includes(this.progress.state);
  }

  #turn(wish: 'run' | 'pause' | 'cancel' | 'abort'): void {
    this.#wish = wish;
    this.#run.abort();
    this.#wake();
  }

  async #live(): Promise<UploadResult> {
    try {
      const result = await this.#untilEnd();
      this.#meter.enter('done');
      return result;
    } catch (failure) {
      const cancelled = failure instanceof SluiceUploadError && failure.code === 'CANCELLED';
      this.#meter.enter(cancelled ? 'cancelled' : 'failed');
      throw failure;
    } finally {
      this.#signal?.removeEventListener('abort', this.#abort);
      await this.#source.close();
    }
  }

  async #untilEnd(): Promise<UploadResult> {
    for (;;) {
      this.#run = new AbortController();
      const { signal } = this.#run;
      if (this.#wish === 'abort') throw uploadError('ABORTED', '', { cause: this.#signal?.reason });
      if (this.#wish === 'cancel') {
        const result = await this.#session.cancel(signal);
        if (result) return result;
        throw uploadError('CANCELLED');
      }
      if (this.#wish === 'pause') {
        this.#meter.enter('paused');
        await new Promise<void>((wake) => (this.#wake = wake));
        continue;
      }
      this.#meter.enter('starting');
      try {
        return await this.#session.run(signal);
      } catch (failure) {
        // A run that was cut off is followed by what the wish is now.
        if (!signal.aborted) throw failure;
      }
    }
  }
}
