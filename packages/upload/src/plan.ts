// How a file is cut into the parts of the store. The plan is made once, when the upload begins, and says for every byte to which
// part it belongs; upload.lua computes the same.
//
// - A known size gives equal parts, larger for large files, and as large as the store's limit on their number asks for.
// - An unknown size gives parts that grow: twice as large after every tenth of the allowed number. Stores that want equal parts
//   (R2) get larger ones from the start.
// - With a chunk size, parts are whole multiples of it, so that no chunk crosses the end of a part; a chunk that is large enough
//   is a part itself, and goes to the store without a stop in Redis.
import type { Capabilities } from '@sluice/store';
import { uploadErrors } from './errors.js';

export interface PartPlan {
  partBytes: number;
  /** After so many parts their size doubles; 0 for equal parts. */
  growEvery: number;
}

export interface Part {
  index: number;
  start: number;
  size: number;
}

const mebibyte = 1_048_576;
export const preferredPartBytes = 8 * mebibyte;
/** With equal parts and an unknown length: 10,000 of them make 640 GiB. */
const equalUnknownPartBytes = 64 * mebibyte;
const tiers = 10;
const largestBufferedParts = 4;

export function planParts(
  size: number | undefined,
  chunkSize: number | undefined,
  limits: Capabilities,
  preferred = preferredPartBytes,
  inOneRequest = false,
): PartPlan {
  const least = Math.max(limits.minPartBytes, Math.min(preferred, limits.maxPartBytes));
  if (size === undefined) {
    const base = limits.equalParts ? Math.max(least, equalUnknownPartBytes) : least;
    const partBytes = inChunks(base, chunkSize, limits);
    // A large chunk stays a part of its own for ever: as a piece of a larger part it would have to be buffered.
    const isLarge = chunkSize !== undefined && chunkSize > largestBufferedParts * preferred;
    return { partBytes, growEvery: limits.equalParts || isLarge ? 0 : growEvery(partBytes, limits) };
  }
  const needed = Math.ceil(size / limits.maxParts / mebibyte) * mebibyte;
  // Small chunks of a large part would need more room in Redis.
  const wished = chunkSize === undefined ? largerParts(size, preferred, inOneRequest) : preferred;
  const base = Math.max(least, needed, Math.min(wished, limits.maxPartBytes));
  if (base > limits.maxPartBytes)
    throw uploadErrors.FILE_TOO_LARGE({ size, limit: limits.maxPartBytes * limits.maxParts });
  const isPart =
    chunkSize !== undefined &&
    chunkSize >= Math.max(limits.minPartBytes, smallestChunkPart(preferred), needed) &&
    chunkSize <= limits.maxPartBytes;
  return { partBytes: isPart ? chunkSize : inChunks(base, chunkSize, limits), growEvery: 0 };
}

/**
 * Each part costs a request: large files have fewer and larger ones, as long as enough of them can be under way at once. Who sends
 * a file in pieces holds several of them in memory; pieces smaller than a part would have to be buffered, so parts stay smaller then.
 */
function largerParts(size: number, preferred: number, inOneRequest: boolean): number {
  if (size < preferred * 16) return preferred;
  return size < preferred * 64 || !inOneRequest ? preferred * 2 : preferred * 4;
}

/** Parts double as often as they can without becoming larger than the store takes. */
function growEvery(partBytes: number, { maxParts, maxPartBytes }: Capabilities): number {
  const sizes = Math.min(tiers, Math.floor(Math.log2(maxPartBytes / partBytes)) + 1);
  return Math.ceil(maxParts / sizes);
}

/** Below this a chunk is no part of its own, even where the store would take it: too many calls. */
function smallestChunkPart(preferred: number): number {
  return Math.min(5 * mebibyte, preferred);
}

function inChunks(partBytes: number, chunkSize: number | undefined, { maxPartBytes }: Capabilities): number {
  if (chunkSize === undefined) return partBytes;
  const aligned = Math.ceil(partBytes / chunkSize) * chunkSize;
  if (aligned > maxPartBytes)
    throw uploadErrors.UPLOAD_INVALID({ what: 'chunkSize', wanted: `at most ${maxPartBytes} bytes` });
  return aligned;
}

/** The part that holds a byte, at its full size. */
export function partAt({ partBytes, growEvery }: PartPlan, offset: number): Part {
  if (growEvery === 0) {
    const index = Math.floor(offset / partBytes);
    return { index, start: index * partBytes, size: partBytes };
  }
  let [start, index, size] = [0, 0, partBytes];
  while (offset >= start + size * growEvery) {
    start += size * growEvery;
    index += growEvery;
    size *= 2;
  }
  const within = Math.floor((offset - start) / size);
  return { index: index + within, start: start + within * size, size };
}

/** The part with this number (from 0), cut at the end of the file if that is known. */
export function partNumbered(plan: PartPlan, index: number, fileSize: number | undefined): Part {
  let [start, size, left] = [0, plan.partBytes, index];
  while (plan.growEvery > 0 && left >= plan.growEvery) {
    start += size * plan.growEvery;
    left -= plan.growEvery;
    size *= 2;
  }
  start += left * size;
  return {
    index,
    start,
    size: fileSize === undefined ? size : Math.max(0, Math.min(size, fileSize - start)),
  };
}
