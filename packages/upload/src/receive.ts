// Bytes come in. A request is cut at the ends of parts: where it brings a whole part, the part goes straight to the store; what
// is less than a part goes to the chunks Redis in frames. Then one script commits the chunk, and only then does it count.
//
// - A numbered chunk, or a range with a digest, counts whole or not at all. A range without a digest counts piece by piece, and of
//   the last piece its whole frames, so that what arrived before a cut connection need not be sent again.
// - `stored` means in the object store; `buffered` means in Redis, and may be asked for again if Redis loses it.
// - The same bytes again are a success, other bytes a conflict; bytes for an upload that has ended replay its end.
import { failPoint, isSluiceError } from '@sluice/base';
import { combineCrc64 } from '@sluice/store';
import {
  inBufferable,
  locate,
  nameOf,
  piecesOf,
  type Chunk,
  type ChunkAddress,
  type Piece,
} from './address.js';
import { BodyReader, type Source } from './body.js';
import { Declared, type Digest } from './digest.js';
import { keysFor, runScript, type Engine } from './engine.js';
import { uploadErrors } from './errors.js';
import type { Passage } from './hashes.js';
import { tellUploading } from './nodeStatus.js';
import { crcOfBody, Placement, type Placed, type Placing } from './place.js';
import { claimRoom } from './quota.js';
import { readState, stateOf, type State, type UploadRef } from './state.js';
import { ask, askFor } from './work.js';
import { dropFrames } from './writePart.js';

export interface Receipt {
  ack: 'buffered' | 'stored';
  duplicate: boolean;
  state: State;
}

/** Pieces of one request whose answers are awaited at once. */
const piecesUnderWay = 3;

export async function receive(
  engine: Engine,
  upload: UploadRef,
  address: ChunkAddress,
  source: Source,
  length: number,
  digest?: Digest,
): Promise<Receipt> {
  const began = performance.now();
  const state = await stateOf(engine, upload);
  const { id } = state;
  if (!isOpen(state) && state.status !== 'COMPLETING') return replay(state);
  const { windowChunks, preferredPartBytes } = engine.settings;
  const window = { chunks: windowChunks, chunkBytes: preferredPartBytes };
  const chunk = locate(state, address, length, window);
  const declared = digest && new Declared(digest);
  const passage = chunk.offset === undefined ? undefined : engine.hashes.begin(id, chunk.offset, length);
  const body = new BodyReader(source, engine.settings.slowMs, watch(engine, id, declared, passage));
  const placement = new Placement(engine, state, body);
  try {
    await claimRoom(engine, state, chunk);
    const receipt = await take(engine, state, chunk, body, placement, declared, passage);
    engine.metrics.chunkReceived(performance.now() - began, length);
    return receipt;
  } catch (error) {
    // Some bytes may have been hashed that do not count.
    if (body.read > 0) engine.hashes.spoil(id);
    await placement.giveBack();
    if (!isSluiceError(error, 'UPLOAD_ENDED')) throw error;
    return await overtaken(engine, id, chunk, body, declared, passage);
  } finally {
    passage?.end();
    body.close();
  }
}

/** Everything that is read goes through the declared digest and, where its place is known, through that of the whole file. */
function watch(engine: Engine, id: string, declared: Declared | undefined, passage: Passage | undefined) {
  let at = passage?.from;
  return (bytes: Buffer): void => {
    declared?.update(bytes);
    if (at === undefined) return;
    engine.hashes.pass(id, at, bytes, passage);
    at += bytes.length;
  };
}

async function take(
  engine: Engine,
  state: State,
  chunk: Chunk,
  body: BodyReader,
  placement: Placement,
  declared: Declared | undefined,
  passage: Passage | undefined,
): Promise<Receipt> {
  const { length } = chunk;
  const byPieces = countsByPieces(chunk, declared);
  const [only, ...others] = piecesOf(state, chunk, undefined);
  const isBuffered = isOpen(state) && only && others.length === 0 && !only.whole && length > 0 && !byPieces;
  // Of a chunk that can only be buffered one script says whether it is known, and makes room for it if not.
  const known = isBuffered
    ? decodeKnown(await placement.admit(only, chunk.name))
    : await knownChunk(engine, state.id, chunk.name);
  const there = comparable(known, chunk, declared);
  if (there) return compareAll(engine, state, chunk, there, body, declared, passage);
  if (state.status === 'COMPLETING') return replay(state);
  const pieces = isBuffered && !known ? [only] : piecesOf(state, chunk, known?.lostAt);
  if (byPieces && pieces.length > 0) {
    const small = inBufferable(pieces, engine.settings.preferredPartBytes);
    return takeEach(engine, state, chunk, small, body, placement, passage);
  }
  await refuseStored(engine, state, chunk, pieces);

  const placed: Placed[] = [];
  let crc64 = 0n;
  for (const piece of pieces) {
    const placing = await placement.place(piece);
    placed.push(await placing.placed);
    crc64 = combineCrc64(crc64, placing.crc64(), piece.length);
  }
  await body.expectEnd(length);
  declared?.verify(crc64);
  failPoint('receive.placed');
  return commit(engine, state, chunk, crc64, placed, placement, passage);
}

/**
 * Others brought its last bytes, or ended it, after we had looked: the answer is the one that it would have been a moment later. What has
 * been read of the body by then cannot be compared any more.
 */
async function overtaken(
  engine: Engine,
  id: string,
  chunk: Chunk,
  body: BodyReader,
  declared: Declared | undefined,
  passage: Passage | undefined,
): Promise<Receipt> {
  const state = await readState(engine, id);
  if (!state) throw uploadErrors.UPLOAD_NOT_FOUND({ id });
  // Some of its bytes got lost, and it goes on.
  if (isOpen(state)) throw uploadErrors.UPLOAD_OVERTAKEN({ id });
  const isComparable = state.status === 'COMPLETING' && body.read === 0;
  const known = isComparable ? await knownChunk(engine, id, chunk.name) : undefined;
  const there = comparable(known, chunk, declared);
  return there ? compareAll(engine, state, chunk, there, body, declared, passage) : replay(state);
}

/** Piece by piece: each counts as soon as it is there. */
async function takeEach(
  engine: Engine,
  state: State,
  chunk: Chunk,
  pieces: Piece[],
  body: BodyReader,
  placement: Placement,
  passage: Passage | undefined,
): Promise<Receipt> {
  const underWay = new Set<Promise<void>>();
  const receipts: Receipt[] = [];
  let failure: Error | undefined;
  const end = chunk.offset! + chunk.length;
  const left = [...pieces];
  for (let piece = left.shift(); piece; piece = left.shift()) {
    const own: Chunk = {
      name: `@${piece.offset}`,
      number: undefined,
      offset: piece.offset,
      length: piece.length,
      last: chunk.last && piece.offset + piece.length === end,
    };
    const known = await knownChunk(engine, state.id, own.name);
    if (known && 'crc64' in known) {
      // Of a connection that was cut the beginning is there: it is compared, and the rest is taken.
      const there = Math.min(known.length, piece.length);
      const crc64 = await crcOfBody(body, there);
      receipts.push(await compare(engine, state, { ...own, length: there }, known, crc64, passage));
      const rest = {
        offset: piece.offset + there,
        length: piece.length - there,
        whole: false,
        isFile: false,
      };
      if (rest.length > 0) left.unshift({ ...piece, ...rest });
      continue;
    }
    await refuseStored(engine, state, own, [piece]);
    const placing = await placement.place(piece);
    const settling = settle(own, placing, left.length === 0 ? [...underWay] : undefined)
      .catch((error: unknown) => {
        failure ??= error as Error;
      })
      .finally(() => underWay.delete(settling));
    underWay.add(settling);
    // The next piece begins when the bytes of this one have been read; its answer may still be under way.
    await Promise.race([placing.read, settling]);
    while (underWay.size >= piecesUnderWay) await Promise.race(underWay);
    if (failure !== undefined) break;
  }
  await Promise.all(underWay);
  if (failure !== undefined) throw failure;
  const ack = receipts.some((receipt) => receipt.ack === 'buffered') ? 'buffered' : 'stored';
  const duplicate = receipts.every((receipt) => receipt.duplicate);
  return { ack, duplicate, state: receipts.at(-1)!.state };

  /** `before` is given to the last piece: what is under way of the others. */
  async function settle(own: Chunk, placing: Placing, before?: Promise<void>[]): Promise<void> {
    try {
      const placed = await placing.placed;
      if (before) await body.expectEnd(chunk.length);
      // Only when all the others are committed is the digest of what passed that of the file.
      await Promise.all(before ?? []);
      const whole = before && failure === undefined ? passage : undefined;
      receipts.push(await commit(engine, state, own, placing.crc64(), [placed], placement, whole));
    } catch (error) {
      const arrived = isSluiceError(error, 'BODY_TOO_LONG') ? undefined : placing.wholeFrames?.();
      if (arrived && arrived.bytes < own.length) {
        const begun = { ...own, length: arrived.bytes, last: false };
        await commit(engine, state, begun, arrived.crc64, [arrived.placed], placement).catch(() => {});
      }
      throw error;
    }
  }
}

async function commit(
  engine: Engine,
  state: State,
  chunk: Chunk,
  crc64: bigint,
  placed: Placed[],
  placement: Placement,
  passage?: Passage,
): Promise<Receipt> {
  const { id } = state;
  const size =
    state.size ?? (chunk.last && chunk.offset !== undefined ? chunk.offset + chunk.length : undefined);
  const answer = await runScript(engine, 'commit', id, {
    id,
    name: chunk.name,
    number: chunk.number ?? '',
    offset: chunk.offset ?? '',
    length: chunk.length,
    crc64: hex(crc64),
    pieces: JSON.stringify(placed),
    last: chunk.last ? '1' : '',
    sha256: (size !== undefined && passage && (await engine.hashes.digestFor(passage, id, size))) || '',
    maxChunks: engine.settings.maxChunks,
    maxParts: engine.storeOf({ bucket: state.bucket, prefix: state.drivePrefix }).capabilities.maxParts,
    lookMs: Math.min(engine.settings.spillAfterMs, engine.settings.lookAgainMs),
  });
  failPoint('receive.committed');
  const [word, received, stored, allStored, ...more] = answer;
  if (word !== 'OK') return refused(engine, state, chunk, word!, placement);
  placement.keep(placed);
  engine.metrics.chunkCommitted();
  // Numbers are parts that are ready; what has a space in it are frames that nobody needs.
  const ready = more.filter((item) => !item.includes(' '));
  await askFor(engine, id, ready, allStored === '1', state);
  if (state.status === 'PENDING' && allStored !== '1') await tellUploading(engine, state);
  await dropFrames(
    engine,
    id,
    more.filter((item) => item.includes(' ')),
  );
  failPoint('receive.asked');
  const isBuffered = placed.some((piece) => piece[0] === 'f' && piece[2] > 0 && piece[4] > 0);
  return {
    ack: isBuffered ? 'buffered' : 'stored',
    duplicate: false,
    state: {
      ...state,
      status: 'UPLOADING',
      size,
      receivedBytes: Number(received),
      storedBytes: Number(stored),
    },
  };
}

/** What a commit that was not accepted means for the client. */
async function refused(
  engine: Engine,
  state: State,
  chunk: Chunk,
  word: string,
  placement: Placement,
): Promise<Receipt> {
  const { id } = state;
  await placement.giveBack();
  const now = await readState(engine, id);
  if (!now || word === 'GONE') throw uploadErrors.UPLOAD_NOT_FOUND({ id });
  const name = nameOf(chunk);
  switch (word) {
    case 'DUPLICATE':
      // Its checksum is the same, which is less than its digest.
      engine.hashes.spoil(id);
      // Whoever committed it may have died before it could ask for what follows.
      await ask(engine, { do: 'tend', upload: id }, state);
      return {
        ack: now.storedBytes === now.receivedBytes ? 'stored' : 'buffered',
        duplicate: true,
        state: now,
      };
    case 'ENDED':
      return replay(now);
    case 'CONFLICT':
      throw uploadErrors.CHUNK_CONFLICT({ chunk: name });
    case 'OVERLAP':
      throw uploadErrors.RANGE_OVERLAPS({ chunk: name });
    case 'BEYOND':
      throw uploadErrors.BEYOND_END({ chunk: name, ...(now.size !== undefined && { size: now.size }) });
    case 'LAST':
      throw uploadErrors.LAST_CONFLICT({ chunk: name });
    case 'TOO_MANY':
      throw uploadErrors.TOO_MANY_CHUNKS({ limit: engine.settings.maxChunks });
    case 'TOO_LARGE':
      throw uploadErrors.FILE_TOO_LARGE({
        size: now.receivedBytes + chunk.length,
        limit: now.maxFileBytes ?? 0,
      });
    case 'UNPAID':
      throw uploadErrors.BUDGET_EXHAUSTED({ retryAfterS: 1 });
    default:
      throw new Error(`commit.lua says ${word}`);
  }
}

/** A whole part would replace the one in the store before the commit could refuse it, so it is refused before it is sent. */
async function refuseStored(engine: Engine, { id }: State, chunk: Chunk, pieces: Piece[]): Promise<void> {
  const whole = pieces.filter((piece) => piece.whole).map(({ part }) => part);
  if (whole.length === 0 || chunk.length === 0) return;
  const known = (await engine.redis.call('HMGET', [keysFor(engine, id)!.parts, ...whole])) as unknown[];
  if (known.some((record) => record !== null)) throw uploadErrors.RANGE_OVERLAPS({ chunk: nameOf(chunk) });
}

interface Committed {
  length: number;
  crc64: bigint;
}

type Known = (Committed | { lostAt: number }) & { lostAt?: number };

async function knownChunk(engine: Engine, id: string, name: string): Promise<Known | undefined> {
  const record = (await engine.redis.call('HGET', [keysFor(engine, id)!.chunks, name])) as Buffer | null;
  return decodeKnown(record === null ? undefined : String(record));
}

/** What the records say of a chunk that was committed before: "length crc64 offset", or "lost length offset crc64". */
function decodeKnown(record: string | undefined): Known | undefined {
  if (record === undefined) return undefined;
  const [length, crc64, offset] = record.split(' ');
  if (length === 'lost') return { lostAt: Number(offset) };
  return { length: Number(length), crc64: BigInt(`0x${crc64}`) };
}

/** What a whole body can be compared with. Under the name of a range without a digest its first piece is known. */
function comparable(
  known: Known | undefined,
  chunk: Chunk,
  declared: Declared | undefined,
): Committed | undefined {
  if (!known || !('crc64' in known)) return undefined;
  return countsByPieces(chunk, declared) && known.length !== chunk.length ? undefined : known;
}

/** A range without a digest: each piece of it counts for itself. */
function countsByPieces({ number }: Chunk, declared: Declared | undefined): boolean {
  return number === undefined && !declared;
}

/** The whole body, with what is known of its chunk. */
async function compareAll(
  engine: Engine,
  state: State,
  chunk: Chunk,
  known: Committed,
  body: BodyReader,
  declared: Declared | undefined,
  passage: Passage | undefined,
): Promise<Receipt> {
  const crc64 = await crcOfBody(body, chunk.length);
  declared?.verify(crc64);
  return compare(engine, state, chunk, known, crc64, passage);
}

async function compare(
  engine: Engine,
  { id }: State,
  chunk: Chunk,
  known: Committed,
  crc64: bigint,
  passage: Passage | undefined,
): Promise<Receipt> {
  if (known.length !== chunk.length || known.crc64 !== crc64)
    throw uploadErrors.CHUNK_CONFLICT({ chunk: nameOf(chunk) });
  // Bytes that count came elsewhere, and these have the same checksum: that is less than the same digest.
  if (passage?.isHashed) engine.hashes.spoil(id);
  const state = await readState(engine, id);
  if (!state) throw uploadErrors.UPLOAD_NOT_FOUND({ id });
  return { ack: state.storedBytes === state.receivedBytes ? 'stored' : 'buffered', duplicate: true, state };
}

/** An upload that has all its bytes answers with its result, as often as it is asked. */
function replay(state: State): Receipt {
  const { id, status, errorMessage } = state;
  if (status === 'COMPLETED' || status === 'COMPLETING') return { ack: 'stored', duplicate: true, state };
  throw uploadErrors.UPLOAD_ENDED({ id, state: status, ...(errorMessage && { reason: errorMessage }) });
}

function isOpen({ status }: State): boolean {
  return status === 'PENDING' || status === 'UPLOADING';
}

export function hex(crc64: bigint): string {
  return crc64.toString(16).padStart(16, '0');
}
