// Where the bytes of a request belong: by number or by range, checked against what the upload knows about itself.
import { uploadErrors } from './errors.js';
import { partAt } from './plan.js';
import type { State } from './state.js';

/** A numbered chunk, or a range of bytes that may say how long the file is. */
export type ChunkAddress = { number: number; last?: boolean } | { offset: number; total?: number };

/** A chunk with everything that was found out about it. */
export interface Chunk {
  /** What it is called in the records and in errors: its number, or `@` and where it begins. */
  name: string;
  number: number | undefined;
  /** Undefined for a numbered chunk whose place depends on others. */
  offset: number | undefined;
  length: number;
  last: boolean;
}

/** The bytes of a chunk that lie in one part. */
export interface Piece {
  offset: number;
  length: number;
  part: number;
  /** All bytes of the part. */
  whole: boolean;
  /** All bytes of the file. */
  isFile: boolean;
}

/**
 * A chunk that learns its place only when it is committed is one piece: the next one in turn counts as the lowest, and one that was
 * lost has the place that it had.
 */
export function piecesOf(
  state: State,
  chunk: Chunk,
  lostAt: number | undefined,
): (Piece & { admitAt?: number })[] {
  const { offset, number, length } = chunk;
  // What begins with the lowest missing bytes is not refused for what follows them.
  if (offset !== undefined)
    return cut(state, { ...chunk, offset }).map((piece) => ({ ...piece, admitAt: offset }));
  const admitAt = lostAt ?? (number === state.nextChunk ? state.nextOffset : undefined);
  return [
    { offset: -1, length, part: -1, whole: false, isFile: false, ...(admitAt !== undefined && { admitAt }) },
  ];
}

/** Pieces that must be buffered are small enough that one of them always fits where room for a part is reserved. */
export function inBufferable(pieces: Piece[], mostBytes: number): Piece[] {
  return pieces.flatMap((piece) => {
    if (piece.whole || piece.length <= mostBytes) return [piece];
    const count = Math.ceil(piece.length / mostBytes);
    return Array.from({ length: count }, (_, i) => ({
      ...piece,
      offset: piece.offset + i * mostBytes,
      length: Math.min(mostBytes, piece.length - i * mostBytes),
    }));
  });
}

/** How far chunks of no fixed size may run ahead of those before them. */
export interface Window {
  chunks: number;
  chunkBytes: number;
}

export function locate(state: State, address: ChunkAddress, length: number, window: Window): Chunk {
  const chunk = place(state, address, length, window);
  const end = (chunk.offset ?? state.receivedBytes) + length;
  if (state.maxFileBytes !== undefined && end > state.maxFileBytes)
    throw uploadErrors.FILE_TOO_LARGE({ size: end, limit: state.maxFileBytes });
  return chunk;
}

function place(state: State, address: ChunkAddress, length: number, window: Window): Chunk {
  if ('number' in address) return locateNumbered(state, address, length, window);
  const { offset, total } = address;
  const chunk = { name: `@${offset}`, number: undefined, offset, length, last: false };
  if (!Number.isSafeInteger(offset) || offset < 0 || !Number.isSafeInteger(offset + length))
    throw uploadErrors.UPLOAD_INVALID({ what: 'the range', wanted: 'within 0 and 2^53−1' });
  if (total !== undefined && state.size !== undefined && total !== state.size)
    throw uploadErrors.SIZE_CONFLICT({ size: total });
  const size = state.size ?? total;
  if (size !== undefined && offset + length > size)
    throw uploadErrors.BEYOND_END({ chunk: nameOf(chunk), size });
  return { ...chunk, last: total !== undefined && offset + length === total };
}

function locateNumbered(
  { size, chunkSize, nextChunk }: State,
  { number, last = false }: { number: number; last?: boolean },
  length: number,
  window: Window,
): Chunk {
  const wanted =
    chunkSize && size !== undefined
      ? `a whole number below ${Math.ceil(size / chunkSize)}`
      : 'a whole number';
  if (!Number.isSafeInteger(number) || number < 0)
    throw uploadErrors.CHUNK_NUMBER({ number: String(number), wanted });
  const chunk = { name: String(number), number, offset: undefined, length, last };
  if (chunkSize === undefined) {
    if (length > window.chunkBytes) throw uploadErrors.CHUNK_TOO_LARGE({ length, limit: window.chunkBytes });
    if (number >= nextChunk + window.chunks) throw uploadErrors.WINDOW_EXCEEDED({ sendFirst: nextChunk });
    return chunk;
  }
  const offset = number * chunkSize;
  if (!Number.isSafeInteger(offset + length))
    throw uploadErrors.CHUNK_NUMBER({ number: String(number), wanted });
  if (size !== undefined) {
    if (offset >= size && !(size === 0 && number === 0))
      throw uploadErrors.BEYOND_END({ chunk: nameOf(chunk), size });
    const expected = Math.min(chunkSize, size - offset);
    if (length !== expected) throw uploadErrors.CHUNK_LENGTH({ number, length, wanted: expected });
    if (last && offset + length !== size) throw uploadErrors.LAST_CONFLICT({ chunk: nameOf(chunk) });
  } else if (length > chunkSize || (length < chunkSize && !last))
    throw uploadErrors.CHUNK_LENGTH({ number, length, wanted: chunkSize });
  return { ...chunk, offset };
}

/** The chunk, cut at the ends of parts. */
function cut(state: State, { offset, length, last }: Chunk & { offset: number }): Piece[] {
  const size = state.size ?? (last ? offset + length : undefined);
  const pieces: Piece[] = [];
  for (let at = offset; at < offset + length;) {
    const part = partAt(state, at);
    const partEnd = Math.min(part.start + part.size, size ?? Infinity);
    const end = Math.min(offset + length, partEnd);
    pieces.push({
      offset: at,
      length: end - at,
      part: part.index,
      whole: at === part.start && end === partEnd,
      isFile: at === 0 && end === size,
    });
    at = end;
  }
  return pieces;
}

export function nameOf({ name, number }: Pick<Chunk, 'name' | 'number'>): string {
  return number === undefined ? `the range at byte ${name.slice(1)}` : `chunk ${number}`;
}
