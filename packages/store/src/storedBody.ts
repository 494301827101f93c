// The bytes of an object on their way out. They arrive complete or the stream ends with STORE_TRUNCATED: a connection that
// closes early, or stays silent while somebody waits for it, is never taken for the end of the object. While the reader is slow
// nothing is read, and the silence is not the store's.
import { Readable } from 'node:stream';
import { storeErrors } from './errors.js';
import { IdleWatch } from './idleWatch.js';

const BUFFERED_BYTES = 256 * 1024;

export class StoredBody extends Readable {
  #came = 0;
  readonly #watch: IdleWatch;

  constructor(
    private readonly source: Readable,
    private readonly key: string,
    private readonly length: number,
    idleMs: number,
  ) {
    super({ highWaterMark: BUFFERED_BYTES });
    this.#watch = new IdleWatch(idleMs, () => this.#breakOff(`no byte came for ${idleMs} ms`));
    this.#watch.hold();
    source.on('data', (chunk: Uint8Array) => this.#onData(chunk));
    source.pause();
    source.on('end', () => this.#onEnd());
    source.on('error', (error) => this.#breakOff(error.message));
    source.on('close', () => this.#came < length && this.#breakOff('the connection was closed'));
  }

  override _read(): void {
    this.#watch.run();
    this.source.resume();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#watch.end();
    this.source.destroy();
    done(error);
  }

  #onData(chunk: Uint8Array): void {
    this.#came += chunk.byteLength;
    if (this.push(chunk)) return this.#watch.run();
    this.#watch.hold();
    this.source.pause();
  }

  #onEnd(): void {
    if (this.#came !== this.length) return this.#breakOff('the connection ended');
    this.#watch.end();
    this.push(null);
  }

  #breakOff(reason: string): void {
    const { key, length } = this;
    this.destroy(storeErrors.STORE_TRUNCATED({ key, length, came: this.#came, reason }));
  }
}
