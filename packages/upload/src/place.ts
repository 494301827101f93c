// Puts the bytes of one request where they belong: whole parts into the store, the rest into frames. Nothing that is placed counts
// before it is committed; what is not committed is given back, or expires.
import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { failPoint } from '@sluice/base';
import { crc64 as crcOf, type Body, type ObjectStore } from '@sluice/store';
import type { Piece } from './address.js';
import type { BodyReader } from './body.js';
import { keysFor, priceOf, runScript, type Engine } from './engine.js';
import { uploadErrors } from './errors.js';
import { attemptMs, frameBytes } from './frames.js';
import { hex } from './receive.js';
import type { State } from './state.js';

/** How long the lowest bytes of an upload may have to wait for room; they are not refused. */
const lowestWaitMs = 60_000;
const waitPauseMs = 50;
const retryAfterS = 2;
const drainBytes = 65_536;

/** As commit.lua wants it. */
export type Placed =
  | ['f', offset: number | '', length: number, attempt: string, frameBytes: number]
  | ['p', part: number, offset: number, length: number, etag: string, crc64: string, key: string];

export interface Placing {
  /** When the bytes have been read; another piece may follow. */
  read: Promise<void>;
  placed: Promise<Placed>;
  /** Of the piece, once it was placed. */
  crc64: () => bigint;
}

export class Placement {
  readonly #engine: Engine;
  readonly #state: State;
  readonly #body: BodyReader;
  readonly #store: ObjectStore;
  /** Attempts in Redis with the number of their frames. */
  readonly #attempts = new Map<string, number>();
  /** Objects that hold a whole file, each under a key of its own. */
  readonly #objects = new Set<string>();

  constructor(engine: Engine, state: State, body: BodyReader) {
    this.#engine = engine;
    this.#state = state;
    this.#body = body;
    this.#store = engine.storeOf({ bucket: state.bucket, prefix: state.drivePrefix });
  }

  async place(piece: Piece & { admitAt?: number }): Promise<Placing> {
    return piece.whole ? this.#toStore(piece) : this.#toFrames(piece);
  }

  /** What was committed is the only copy now: it stays. */
  async keep(): Promise<void> {
    const { frames } = this.#engine;
    const { id } = this.#state;
    await Promise.all([...this.#attempts].map(([attempt, count]) => frames.keep(id, attempt, count, true)));
    this.#attempts.clear();
    this.#objects.clear();
  }

  /** What came to nothing leaves nothing. Whoever cannot be reached now cleans up by itself. */
  async giveBack(): Promise<void> {
    const { id } = this.#state;
    const frames = [...this.#attempts].map(async ([attempt, count]) => {
      await this.#engine.frames.drop(id, attempt, count);
      await runScript(this.#engine, 'release', id, { id, attempt });
    });
    const objects = [...this.#objects].map((key) => this.#store.delete(key));
    this.#attempts.clear();
    this.#objects.clear();
    await Promise.allSettled([...frames, ...objects]);
  }

  async #toStore({ offset, length, part }: Piece): Promise<Placing> {
    const { objectKey, contentType, size } = this.#state;
    const isFile = offset === 0 && length === size;
    const multipart = isFile ? undefined : await ensureMultipart(this.#engine, this.#state, this.#store);
    const key = isFile ? `${objectKey}-${randomBytes(8).toString('hex')}` : '';
    if (isFile) this.#objects.add(key);
    const began = performance.now();
    const type = contentType !== undefined && { contentType };
    const send = (body: Body, crc64?: bigint): Promise<{ etag: string; crc64?: bigint }> => {
      const sum = crc64 !== undefined && { crc64 };
      return multipart
        ? this.#store.putPart(multipart, part + 1, body, { ...sum })
        : this.#store.put(key, body, { ...type, ...sum });
    };
    const place = this.#engine.partMemory.take(length);
    const placing = place ? this.#fromMemory(place, length, send) : this.#asStream(length, send);
    const placed = placing.sent.then((etag): Placed => {
      this.#engine.metrics.stored(performance.now() - began, length);
      failPoint('receive.stored');
      return ['p', part, offset, length, etag, hex(placing.crc64()), key];
    });
    placed.catch(() => {});
    return { read: placing.read, placed, crc64: placing.crc64 };
  }

  /** The bytes are read first and sent then; the next piece is read meanwhile. */
  #fromMemory(
    place: Buffer,
    length: number,
    send: (body: Body, crc64?: bigint) => Promise<{ etag: string }>,
  ) {
    const bytes = place.subarray(0, length);
    let crc64 = 0n;
    const reading = this.#body.fill(bytes).then((got) => {
      if (got < length) throw uploadErrors.BODY_TRUNCATED({ wanted: length, got });
    });
    const sending = async (): Promise<string> => {
      try {
        await reading;
        crc64 = crcOf(bytes, 0n);
        return (await send(bytes, crc64)).etag;
      } finally {
        this.#engine.partMemory.giveBack(place);
      }
    };
    return { read: reading.catch(() => {}), sent: sending(), crc64: () => crc64 };
  }

  #asStream(length: number, send: (body: Body) => Promise<{ etag: string; crc64?: bigint }>) {
    let crc64 = 0n;
    // A store that computes it need not be checked by computing it twice: it refuses what arrives otherwise.
    const knows = this.#store.capabilities.crc64;
    const stream = this.#body.stream(length, (bytes) => {
      if (!knows) crc64 = crcOf(bytes, crc64);
    });
    const read = new Promise<void>((resolve) => {
      stream.once('close', resolve);
      stream.once('end', resolve);
    });
    const sent = send({ stream, length }).then((stored) => {
      if (!knows) return stored.etag;
      if (stored.crc64 === undefined) throw uploadErrors.STORE_SILENT({ what: 'a part' });
      crc64 = stored.crc64;
      return stored.etag;
    });
    sent.catch(() => stream.destroy());
    return { read, sent, crc64: () => crc64 };
  }

  async #toFrames({ offset, length, admitAt = offset }: Piece & { admitAt?: number }): Promise<Placing> {
    const attempt = randomBytes(9).toString('base64url');
    let crc64 = 0n;
    const placing = async (): Promise<Placed> => {
      if (length > 0) await this.#admit(attempt, admitAt, length);
      const { id } = this.#state;
      let at = 0;
      let extendedMs = performance.now();
      let sending: Promise<void> = Promise.resolve();
      for (let number = 0; at < length; number++) {
        const frame = await this.#body.take(Math.min(frameBytes, length - at));
        crc64 = crcOf(frame, crc64);
        await sending;
        sending = this.#engine.frames.put(id, attempt, number, frame);
        sending.catch(() => {});
        at += frame.length;
        if (performance.now() - extendedMs > attemptMs / 3) {
          extendedMs = performance.now();
          await this.#engine.frames.keep(id, attempt, number, false);
          await runScript(this.#engine, 'extend', id, { attempt, attemptMs });
        }
      }
      await sending;
      failPoint('receive.framed');
      return ['f', offset < 0 ? '' : offset, length, attempt, frameBytes];
    };
    const placed = placing();
    placed.catch(() => {});
    return {
      read: placed.then(
        () => {},
        () => {},
      ),
      placed,
      crc64: () => crc64,
    };
  }

  /** Pays for the bytes before the first one is sent. */
  async #admit(attempt: string, offset: number, length: number): Promise<void> {
    const { settings } = this.#engine;
    const { id } = this.#state;
    const frames = Math.ceil(length / frameBytes);
    const giveUpMs = performance.now() + lowestWaitMs;
    for (;;) {
      const [word] = await runScript(this.#engine, 'admit', id, {
        id,
        attempt,
        offset: offset < 0 ? '' : offset,
        bytes: length,
        price: priceOf(length) + 512 * frames,
        frames,
        budgetBytes: Math.floor(settings.budgetBytes / settings.partitions),
        uploadBytes: settings.uploadBudgetBytes,
        attemptMs,
      });
      if (word === 'OK') {
        this.#attempts.set(attempt, frames);
        return;
      }
      if (word === 'GONE') throw uploadErrors.UPLOAD_NOT_FOUND({ id });
      if (word === 'ENDED') throw uploadErrors.UPLOAD_ENDED({ id, state: 'ended' });
      if (word === 'BUSY' || performance.now() > giveUpMs) {
        this.#engine.metrics.refusedForRoom();
        throw uploadErrors.BUDGET_EXHAUSTED({ retryAfterS });
      }
      await pause(waitPauseMs);
    }
  }
}

/** The multipart upload of the store, made when its first part comes. Two who make one at once keep the first. */
export async function ensureMultipart(
  engine: Engine,
  { id, objectKey, multipartId, contentType }: State,
  store: ObjectStore,
): Promise<{ key: string; id: string }> {
  if (multipartId !== undefined) return { key: objectKey, id: multipartId };
  const known = await engine.redis.call('HGET', [keysFor(engine, id)!.state, 's3_upload_id']);
  if (known !== null && String(known) !== '') return { key: objectKey, id: String(known) };
  const made = await store.createMultipart(objectKey, { ...(contentType !== undefined && { contentType }) });
  failPoint('multipart.created');
  const [counts] = await runScript(engine, 'multipart', id, { multipartId: made.id });
  if (counts !== made.id) await store.abortMultipart(made);
  if (!counts || counts === 'GONE') throw uploadErrors.UPLOAD_ENDED({ id, state: 'ended' });
  return { key: objectKey, id: counts };
}

/** Reads a body whose bytes are there already, and says what they are. */
export async function crcOfBody(body: BodyReader, length: number): Promise<bigint> {
  let crc64 = 0n;
  for (let left = length; left > 0;) {
    const bytes = await body.next(Math.min(left, drainBytes));
    if (bytes === undefined) throw uploadErrors.BODY_TRUNCATED({ wanted: length, got: length - left });
    crc64 = crcOf(bytes, crc64);
    left -= bytes.length;
  }
  return crc64;
}
