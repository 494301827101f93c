// Pages of a list: how many are asked for, and what is looked for.
import { restErrors } from './errors.js';

const usual = 100;
const largest = 1_000;

export function pageLimit(text: string | undefined): number {
  const limit = text === undefined ? usual : /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > largest)
    throw restErrors.REQUEST_INVALID({ reason: `limit must be a whole number from 1 to ${largest}` });
  return limit;
}

/** PostgreSQL knows no NUL: nothing that is there has one. */
export function searched(text: string): string {
  if (text.includes('\0')) throw restErrors.REQUEST_INVALID({ reason: 'there is a NUL in the query' });
  return text;
}
