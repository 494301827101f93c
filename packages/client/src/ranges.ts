/**
 * What the server lacks, in chunks. A view lists at most a hundred missing ranges, in ascending order; when it lists that
 * many there may be more, and of the bytes behind the last one nothing is known until the next view.
 */
import { MAX_LISTED_RANGES } from './protocol.js';
import type { UploadView } from './protocol.js';

type Missing = Pick<UploadView, 'missing'>;

/** Whether any byte from `first` up to `end` (not included) is missing; `undefined` where the view does not reach. */
export function isMissing({ missing }: Missing, first: number, end: number): boolean | undefined {
  const at = lowestEndingFrom(missing, first);
  const range = missing[at];
  if (range && range[0] < end) return true;
  if (missing.length < MAX_LISTED_RANGES || range) return false;
  return undefined;
}

/** The place of the first range that ends at `byte` or behind it. */
function lowestEndingFrom(missing: Missing['missing'], byte: number): number {
  let low = 0;
  let high = missing.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const last = missing[middle]![1];
    if (last !== null && last < byte) low = middle + 1;
    else high = middle;
  }
  return low;
}
