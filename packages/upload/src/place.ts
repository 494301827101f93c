// Puts the bytes of one request where they belong: whole parts into the store, the rest into frames. Nothing that is placed counts
// before it is committed; what is not committed is given back, or expires.
import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { failPoint, isSluiceError } from '@sluice/base';
import { crc64 as crcOf, RunningCrc64, type Body, type ObjectStore } from '@sluice/store';
import type { Piece } from './address.js';
import type { BodyReader } from './body.js';
import { completionErrors } from './completionErrors.js';
import { budgetOf, chunkPriceOf, keysFor, runScript, type Engine } from './engine.js';
import { uploadErrors } from './errors.js';
import { frameBytes } from './frames.js';
import { partitionOf } from './keys.js';
import { hex } from './receive.js';
import { stagingKey } from './spill.js';
import { readExtents, readParts, type State } from './state.js';
import { ask } from './work.js';

/** How long the lowest bytes of an upload wait for room in Redis before they are staged; they are not refused. */
const lowestWaitMs = 10_000;
const waitPauseMs = 50;
const askForRoomMs = 500;
const retryAfterS = 2;
const drainBytes = 65_536;

/** As commit.lua wants it. */
export type Placed =
  | ['f', offset: number | '', length: number, source: string, frameBytes: number]
  | ['p', part: number, offset: number, length: number, etag: string, crc64: string, key: string];

export interface Placing {
  /** When the bytes have been read; another piece may follow. */
  read: Promise<void>;
  placed: Promise<Placed>;
  /** Of the piece, once it was placed. */
  crc64: () => bigint;
  /** What has arrived of a piece that was cut short: its whole frames. */
  wholeFrames?: () => { placed: Placed; crc64: bigint; bytes: number } | undefined;
}

/** What has come of a piece, and how much of it is in Redis as whole frames. */
interface Arrived {
  crc64: bigint;
  frames: number;
  framesCrc64: bigint;
}

/** Whether bytes are paid for, known already, or to be staged because there is no room for them. */
type Admission = { word: 'OK' | 'STAGE' } | { word: 'KNOWN'; record: string };

/** A piece, and where the chunk begins that it is of, or probably will when it is committed. */
type BufferedPiece = Piece & { admitAt?: number };

export class Placement {
  readonly #engine: Engine;
  readonly #state: State;
  readonly #body: BodyReader;
  readonly #store: ObjectStore;
  /** Attempts in Redis with the number of their frames. */
  readonly #attempts = new Map<string, number>();
  /** The attempts of pieces that have been admitted. */
  readonly #admitted = new Map<Piece, string>();
  /** Those of them for which there is no room in Redis. */
  readonly #staged = new Set<Piece>();
  /** Objects that hold a whole file or a staged piece, each under a key of its own. */
  readonly #objects = new Set<string>();

  constructor(engine: Engine, state: State, body: BodyReader) {
    this.#engine = engine;
    this.#state = state;
    this.#body = body;
    this.#store = engine.storeOf({ bucket: state.bucket, prefix: state.drivePrefix });
  }

  /** Makes room for a piece that will be buffered, unless its chunk is known: then returns what is known of it. */
  async admit(piece: BufferedPiece, name: string): Promise<string | undefined> {
    const attempt = newAttempt();
    const admission = await this.#admit(piece, attempt, name);
    if (admission.word === 'KNOWN') return admission.record;
    this.#admitted.set(piece, attempt);
    if (admission.word === 'STAGE') this.#staged.add(piece);
    return undefined;
  }

  async place(piece: BufferedPiece): Promise<Placing> {
    if (!piece.whole) return this.#toBuffer(piece);
    const placing = await this.#toStore(piece);
    const placed = placing.placed.catch((error: unknown) =>
      forgetMultipart(this.#engine, this.#state, error),
    );
    placed.catch(() => {});
    return { ...placing, placed };
  }

  /**
   * What was committed is the only copy now: it stays. Nobody waits for that, because it is committed whatever comes of it, and whoever
   * looks after the upload keeps the frames if we cannot.
   */
  keep(placed: Placed[]): void {
    const { frames } = this.#engine;
    const { id } = this.#state;
    for (const piece of placed) {
      this.#objects.delete(piece[0] === 'p' ? piece[6] : piece[3].slice(1));
      const count = piece[0] === 'f' ? this.#attempts.get(piece[3]) : undefined;
      if (piece[0] === 'p' || count === undefined) continue;
      this.#attempts.delete(piece[3]);
      frames.keep(id, piece[3], count, true).catch(() => {});
    }
  }

  /**
   * What came to nothing leaves nothing. Nobody knows whether a commit whose answer got lost has happened, so what counts is
   * asked for first, and stays. Whoever cannot be reached now cleans up by itself.
   */
  async giveBack(): Promise<void> {
    const { id } = this.#state;
    const frames = [...this.#attempts].map(async ([attempt, count]) => {
      const [word] = await runScript(this.#engine, 'release', id, { id, attempt });
      if (word === 'KEPT') await this.#engine.frames.keep(id, attempt, count, true);
      else await this.#engine.frames.drop(id, attempt, count);
    });
    const objects = [...this.#objects].map(async (key) => {
      const [parts, extents] = await Promise.all([
        readParts(this.#engine, id),
        readExtents(this.#engine, id),
      ]);
      const counts = parts.some((part) => part.key === key) || extents.some(({ staged }) => staged === key);
      if (!counts) await this.#store.delete(key);
    });
    this.#attempts.clear();
    this.#objects.clear();
    await Promise.allSettled([...frames, ...objects]);
  }

  async #toStore({ offset, length, part, isFile }: Piece): Promise<Placing> {
    const { objectKey, contentType } = this.#state;
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
    const sum = new RunningCrc64();
    const reading = this.#body
      .fill(bytes, (piece) => sum.update(piece))
      .then((got) => {
        if (got < length) throw uploadErrors.BODY_TRUNCATED({ wanted: length, got });
      });
    const sending = async (): Promise<string> => {
      try {
        await reading;
        return (await send(bytes, sum.value)).etag;
      } finally {
        this.#engine.partMemory.giveBack(place);
      }
    };
    return { read: reading.catch(() => {}), sent: sending(), crc64: () => sum.value };
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
      // A body that breaks before the store listens must not end the process.
      stream.on('error', () => {});
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

  #toBuffer(piece: BufferedPiece): Placing {
    const { length } = piece;
    const arrived: Arrived = { crc64: 0n, frames: 0, framesCrc64: 0n };
    const placing = async (): Promise<Placed> => {
      if (length > 0 && !this.#admitted.has(piece)) await this.admit(piece, '');
      const attempt = this.#admitted.get(piece) ?? newAttempt();
      const placed = await (this.#staged.has(piece)
        ? this.#toStaging(piece, arrived)
        : this.#toFrames(piece, attempt, arrived));
      failPoint('receive.buffered');
      return placed;
    };
    const placed = placing();
    placed.catch(() => {});
    return {
      read: placed.then(
        () => {},
        () => {},
      ),
      placed,
      crc64: () => arrived.crc64,
      wholeFrames: () => {
        const bytes = Math.min(length, arrived.frames * frameBytes);
        const attempt = this.#admitted.get(piece)!;
        return bytes > 0
          ? { placed: buffered(piece, bytes, attempt, frameBytes), crc64: arrived.framesCrc64, bytes }
          : undefined;
      },
    };
  }

  async #toFrames(piece: Piece, attempt: string, arrived: Arrived): Promise<Placed> {
    const { frames, settings } = this.#engine;
    const { id } = this.#state;
    const { length } = piece;
    // A body may take as long as it likes.
    const extending = setInterval(() => {
      void Promise.allSettled([
        frames.keep(id, attempt, arrived.frames, false),
        runScript(this.#engine, 'extend', id, { attempt, attemptMs: settings.attemptMs }),
      ]);
    }, settings.attemptMs / 3).unref();
    let sending: Promise<void> = Promise.resolve();
    try {
      for (let at = 0, number = 0; at < length; number++) {
        const frame = await this.#body.take(Math.min(frameBytes, length - at));
        const crc64 = crcOf(frame, arrived.crc64);
        arrived.crc64 = crc64;
        await sending;
        const soFar = { frames: number + 1, framesCrc64: crc64 };
        sending = frames.put(id, attempt, number, frame).then(() => void Object.assign(arrived, soFar));
        sending.catch(() => {});
        at += frame.length;
      }
    } finally {
      clearInterval(extending);
      await sending.catch(() => {});
    }
    await sending;
    return buffered(piece, length, attempt, frameBytes);
  }

  /** Redis has no room: the bytes go where those of quiet uploads go, and are put together with the rest of their part from there. */
  async #toStaging(piece: Piece, arrived: Arrived): Promise<Placed> {
    const { offset, length } = piece;
    const key = stagingKey(this.#state, Math.max(offset, 0));
    this.#objects.add(key);
    const send = (body: Body, crc64?: bigint): Promise<{ etag: string; crc64?: bigint }> =>
      this.#store.put(key, body, { ...(crc64 !== undefined && { crc64 }) });
    const place = this.#engine.partMemory.take(length);
    const { sent, crc64 } = place ? this.#fromMemory(place, length, send) : this.#asStream(length, send);
    await sent;
    arrived.crc64 = crc64();
    this.#engine.metrics.spilled(length);
    return buffered(piece, length, `*${key}`, 0);
  }

  /** Pays for the bytes before the first one is sent. */
  async #admit(piece: BufferedPiece, attempt: string, name: string): Promise<Admission> {
    const { length, admitAt: offset = piece.offset } = piece;
    const { settings } = this.#engine;
    const { id } = this.#state;
    const frames = Math.ceil(length / frameBytes);
    const price = chunkPriceOf(length);
    const { budgetBytes, uploadBytes } = budgetOf(this.#engine);
    if (price > uploadBytes)
      throw uploadErrors.CHUNK_TOO_LARGE({ length, limit: bufferedLimit(uploadBytes) });
    const args = { id, name, attempt, offset: offset < 0 ? '' : offset, bytes: length, price, frames };
    const limits = { budgetBytes, uploadBytes, attemptMs: settings.attemptMs };
    let word: string | undefined;
    let record: string | undefined;
    const askForRoom = async (): Promise<boolean> => {
      [word, record] = await runScript(this.#engine, 'admit', id, { ...args, ...limits });
      return word !== 'FULL' && word !== 'STAGE';
    };
    const began = performance.now();
    for (let askedMs = began; ;) {
      if (!(await askForRoom()))
        await this.#engine.roomLines.wait(partitionOf(id) ?? 0, askForRoom, () => this.#body.isBroken);
      if (word === 'OK') {
        this.#attempts.set(attempt, frames);
        return { word };
      }
      if (word === 'KNOWN') return { word, record: record! };
      if (word === 'GONE') throw uploadErrors.UPLOAD_NOT_FOUND({ id });
      if (word === 'ENDED') throw uploadErrors.UPLOAD_ENDED({ id, state: 'ended' });
      const isLate = performance.now() > began + lowestWaitMs;
      if (word === 'STAGE' || (word === 'WAIT' && isLate)) return { word: 'STAGE' };
      if (word === 'BUSY' || word === 'FULL') {
        this.#engine.metrics.refusedForRoom();
        throw uploadErrors.BUDGET_EXHAUSTED({ retryAfterS });
      }
      // Parts on their way to the store make room by themselves; after that somebody must move what is in the way.
      if (performance.now() - askedMs > askForRoomMs) {
        askedMs = performance.now();
        await ask(this.#engine, { do: 'tend', upload: id }, this.#state);
      }
      await pause(waitPauseMs);
    }
  }
}

/** About the largest chunk that fits. */
export function bufferedLimit(uploadBytes: number): number {
  return Math.floor(uploadBytes / 1.25) - 65_536;
}

function buffered({ offset }: Piece, bytes: number, source: string, frame: number): Placed {
  return ['f', offset < 0 ? '' : offset, bytes, source, frame];
}

function newAttempt(): string {
  return randomBytes(9).toString('base64url');
}

/** The multipart upload of the store, made when its first part comes. Two who make one at once keep the first. */
export async function ensureMultipart(
  engine: Engine,
  { id, objectKey, multipartId, contentType }: State,
  store: ObjectStore,
): Promise<{ key: string; id: string }> {
  if (multipartId !== undefined) return { key: objectKey, id: multipartId };
  const known = (await engine.redis.call('HGET', [
    keysFor(engine, id)!.state,
    's3_upload_id',
  ])) as Buffer | null;
  if (known !== null && known.length > 0) return { key: objectKey, id: String(known) };
  const made = await store.createMultipart(objectKey, { ...(contentType !== undefined && { contentType }) });
  failPoint('multipart.created');
  const [counts] = await runScript(engine, 'multipart', id, { multipartId: made.id });
  if (counts !== made.id) await store.abortMultipart(made);
  if (!counts || counts === 'GONE') throw uploadErrors.UPLOAD_ENDED({ id, state: 'ended' });
  return { key: objectKey, id: counts };
}

/**
 * The store does not know the multipart upload any more: its parts went with it, and all of them are asked for again. Unless they have just
 * become the object, or the upload has ended otherwise.
 */
export async function forgetMultipart(engine: Engine, state: State, error: unknown): Promise<never> {
  if (!isSluiceError(error, 'MULTIPART_NOT_FOUND')) throw error;
  const { id, fence } = state;
  const multipartId = (error.details as { id?: string } | undefined)?.id ?? '';
  const { lookAgainMs: lookMs } = engine.settings;
  const args = { id, source: '', part: '', etag: '', multipartId, fence, lookMs };
  const [word] = await runScript(engine, 'lose', id, args);
  if (word !== 'OK') throw uploadErrors.UPLOAD_OVERTAKEN({ id }, { cause: error });
  engine.logger.warn({ upload: id, err: error }, 'the store has forgotten the multipart upload');
  throw completionErrors.MULTIPART_LOST({ id }, { cause: error });
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
