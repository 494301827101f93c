// The form of every answer that could be long: what was found, how much was looked at, whether that was all, where to go on.
import { inspectErrors } from './errors.js';

export interface Page<Item> {
  items: Item[];
  /** How many were looked at to find these. */
  scanned: number;
  /** Nothing was left out. */
  complete: boolean;
  /** Where the next page begins; null at the end. */
  cursor: string | null;
}

export function checkLimit(field: string, value: number, most: number): void {
  if (Number.isSafeInteger(value) && value >= 1 && value <= most) return;
  throw inspectErrors.QUESTION_INVALID({ field, value, allowed: `a whole number from 1 to ${most}` });
}
