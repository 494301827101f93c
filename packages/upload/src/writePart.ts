// A part whose bytes are all buffered goes to the store: frames and staging objects are read one after the other, and streamed.
// The part is recorded only if its bytes are still the ones that were read; then the frames can go. A frame that has vanished
// makes its range missing again, and the client is asked for it.
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { failPoint, isSluiceError } from '@sluice/base';
import { crc64 as crcOf, type ObjectStore } from '@sluice/store';
import { keysFor, runScript, type Engine } from './engine.js';
import { uploadErrors } from './errors.js';
import { frameBytes } from './frames.js';
import { ensureMultipart, forgetMultipart } from './place.js';
import { partNumbered } from './plan.js';
import { hex } from './receive.js';
import type { Slot } from './recentFrames.js';
import { readExtents, readState, receivedCrc64, type Extent, type State } from './state.js';
import { ask } from './work.js';

export async function writePart(
  engine: Engine,
  id: string,
  index: number,
  signal: AbortSignal,
): Promise<void> {
  const state = await readState(engine, id);
  if (!state || (state.status !== 'PENDING' && state.status !== 'UPLOADING')) return;
  const { start, size } = partNumbered(state, index, state.size);
  const extents = await readExtents(engine, id, start, start + size);
  if (!covers(extents, start, size)) return;
  if (await loseVanished(engine, id, await keepFrames(engine, id, extents))) throw uploadErrors.CHUNKS_LOST();
  const store = engine.storeOf({ bucket: state.bucket, prefix: state.drivePrefix });
  const began = performance.now();
  const received = await receivedCrc64(engine, id, extents);
  const bytes = new PartBytes(engine, id, store, extents, received === undefined);
  const { etag, crc64, key } = await send(engine, state, store, index, size, bytes, received, signal).catch(
    async (error: unknown) => {
      bytes.end(false);
      await bytes.giveUpLost();
      if (isSluiceError(error, 'BODY_CHECKSUM')) await loseChanged(engine, id, store, extents);
      return forgetMultipart(engine, state, error);
    },
  );
  bytes.end(true);
  engine.metrics.stored(performance.now() - began, size);
  failPoint('part.sent');
  const [word, allStored, ...freed] = await runScript(engine, 'stored', id, {
    id,
    part: index,
    start,
    length: size,
    etag,
    crc64: hex(crc64),
    key,
    extents: extents.map(({ member }) => member).join('\n'),
    lookMs: engine.settings.lookAgainMs,
  });
  failPoint('part.recorded');
  if (word !== 'OK' && key !== '') await store.delete(key);
  if (word === 'STALE') throw uploadErrors.CHUNKS_LOST();
  if (allStored === '1') await ask(engine, { do: 'complete', upload: id }, state);
  await dropFrames(engine, id, freed);
}

/** A file of one part becomes an object of its own, under a key that no other attempt uses. */
async function send(
  engine: Engine,
  state: State,
  store: ObjectStore,
  index: number,
  size: number,
  bytes: PartBytes,
  received: bigint | undefined,
  signal: AbortSignal,
): Promise<{ etag: string; crc64: bigint; key: string }> {
  const { contentType, objectKey } = state;
  const key = index === 0 && size === state.size ? `${objectKey}-${randomBytes(8).toString('hex')}` : '';
  const body = { stream: Readable.from(bytes.read(), { objectMode: false }), length: size };
  // What arrived is what must be stored; the store refuses anything else.
  const options = { signal, ...(received !== undefined && { crc64: received }) };
  const stored =
    key === ''
      ? await store.putPart(await ensureMultipart(engine, state, store), index + 1, body, options)
      : await store.put(key, body, { ...(contentType !== undefined && { contentType }), ...options });
  const crc64 = received ?? bytes.crc64;
  const there = stored.crc64 ?? crc64;
  if (there !== crc64)
    throw uploadErrors.STORE_DIFFERS({ what: `part ${index + 1}`, store: hex(there), sent: hex(crc64) });
  return { etag: stored.etag, crc64, key };
}

/**
 * The bytes of some extents in their order, one frame in memory at a time and the next one on its way. Frames that this process still
 * has are lent to the reader, until `end` says that it has read them.
 */
export class PartBytes {
  readonly #engine: Engine;
  readonly #id: string;
  readonly #store: ObjectStore;
  readonly #extents: Extent[];
  readonly #sums: boolean;
  readonly #lent: Slot[] = [];
  /** Of what was read, if it is summed up. */
  crc64 = 0n;
  /** The attempt whose frames are gone, if reading failed because of that. */
  lost: string | undefined;

  constructor(engine: Engine, id: string, store: ObjectStore, extents: Extent[], sums: boolean) {
    this.#engine = engine;
    this.#id = id;
    this.#store = store;
    this.#extents = extents;
    this.#sums = sums;
  }

  /** If reading failed because bytes are gone, they become missing, and the client is asked for them. */
  async giveUpLost(): Promise<void> {
    if (this.lost === undefined) return;
    await loseVanished(this.#engine, this.#id, [this.lost]);
    throw uploadErrors.CHUNKS_LOST();
  }

  /** `isRead` when whoever got the bytes is certainly done with them: it may repeat itself, or have been cut off in the middle. */
  end(isRead: boolean): void {
    for (const slot of this.#lent.splice(0)) this.#engine.frames.releaseRecent(slot, isRead);
  }

  async *read(): AsyncGenerator<Buffer> {
    for (const extent of this.#extents) {
      const pieces = extent.staged === undefined ? this.#frames(extent) : this.#staged(extent);
      for await (const bytes of pieces) {
        if (this.#sums) this.crc64 = crcOf(bytes, this.crc64);
        yield bytes;
      }
    }
  }

  async *#frames({ attempt, start, length }: Extent): AsyncGenerator<Buffer> {
    const { frames } = this.#engine;
    const fetch = async (at: number): Promise<Buffer | undefined> => {
      const from = at % frameBytes;
      const size = Math.min(frameBytes - from, start + length - at);
      const number = Math.floor(at / frameBytes);
      const recent = frames.takeRecent(this.#id, attempt!, number);
      if (!recent) return frames.get(this.#id, attempt!, number, from, size);
      this.#lent.push(recent);
      return recent.bytes.subarray(from, from + size);
    };
    const stop = start + length;
    let next = start < stop ? fetch(start) : undefined;
    for (let at = start; at < stop;) {
      const bytes: Buffer | undefined = await next;
      if (bytes === undefined) {
        this.lost = attempt;
        throw uploadErrors.CHUNKS_LOST();
      }
      at += bytes.length;
      next = at < stop ? fetch(at) : undefined;
      next?.catch(() => {});
      yield bytes;
    }
  }

  async *#staged({ staged, start, length }: Extent): AsyncGenerator<Buffer> {
    const range = { first: start, last: start + length - 1 };
    const object = await this.#store.get(staged!, { range }).catch((error: unknown) => {
      // A store that is away may come back; an object that is not there does not.
      if (isSluiceError(error, 'OBJECT_NOT_FOUND')) this.lost = `*${staged}`;
      throw error;
    });
    for await (const bytes of object.stream as AsyncIterable<Buffer>) yield bytes;
  }
}

function covers(extents: Extent[], start: number, size: number): boolean {
  let at = start;
  for (const { offset, length } of extents) {
    if (offset !== at) return false;
    at += length;
  }
  return at === start + size && size > 0;
}

/** As long as somebody tries to store them, the only copies do not expire. Returns the attempts whose frames are gone. */
export async function keepFrames(
  engine: Engine,
  id: string,
  extents: Pick<Extent, 'attempt' | 'start' | 'length'>[],
): Promise<string[]> {
  const counts = new Map<string, number>();
  for (const { attempt, start, length } of extents) {
    if (attempt === undefined) continue;
    const frames = Math.ceil((start + length) / frameBytes);
    counts.set(attempt, Math.max(counts.get(attempt) ?? 0, frames));
  }
  const gone: string[] = [];
  await Promise.all(
    [...counts].map(async ([attempt, count]) => {
      const areThere = await engine.frames.keep(id, attempt, count, true);
      if (!areThere) gone.push(attempt);
    }),
  );
  return gone;
}

/** What was only there becomes missing, and the client is asked for it. Returns whether there was any. */
export async function loseVanished(engine: Engine, id: string, sources: string[]): Promise<boolean> {
  for (const source of sources) {
    engine.logger.warn({ upload: id }, 'buffered bytes are gone; the client is asked for them again');
    const args = { id, source, part: '', etag: '', multipartId: '', fence: '' };
    const { lookAgainMs: lookMs } = engine.settings;
    const [, , ...freed] = await runScript(engine, 'lose', id, { ...args, lookMs });
    await dropFrames(engine, id, freed);
  }
  return sources.length > 0;
}

/** What was sent to the store is not what had arrived: frames that have changed in Redis are as good as gone. */
async function loseChanged(engine: Engine, id: string, store: ObjectStore, extents: Extent[]): Promise<void> {
  const changed: string[] = [];
  for (const extent of extents) {
    const received = await receivedCrc64(engine, id, [extent]);
    const bytes = new PartBytes(engine, id, store, [extent], true);
    for await (const piece of bytes.read()) void piece;
    bytes.end(true);
    if (extent.attempt !== undefined && bytes.crc64 !== received) changed.push(extent.attempt);
  }
  if (await loseVanished(engine, id, changed)) throw uploadErrors.CHUNKS_LOST();
}

/** `freed` as the scripts say it: attempt and number of frames. What is not dropped now is dropped by whoever looks. */
export async function dropFrames(engine: Engine, id: string, freed: string[]): Promise<void> {
  if (freed.length === 0) return;
  const names = await Promise.all(
    freed.map(async (line) => {
      const [attempt, count] = line.split(' ');
      await engine.frames.drop(id, attempt!, Number(count));
      return `!${attempt}`;
    }),
  );
  await engine.redis.call('HDEL', [keysFor(engine, id)!.attempts, ...names]);
}
