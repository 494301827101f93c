// Reading a query: numbers and times come as text that somebody else wrote, and are refused by name.
import { restErrors, type JsonSchema } from '@sluice/rest';

type Query = Record<string, string | undefined>;

export const largestPage = 500;
const usualPage = 50;

/** How every list is asked for its next page. */
export const paging: Record<string, JsonSchema> = {
  limit: { type: 'integer', minimum: 1, maximum: largestPage },
  cursor: { type: 'string', description: 'The `next` of the page before.' },
};

export function pageOf(query: Query): { limit: number; cursor?: string } {
  const cursor = query['cursor'];
  const limit = wholeNumber(query, 'limit', 1, largestPage) ?? usualPage;
  return { limit, ...(cursor !== undefined && { cursor }) };
}

export function wholeNumber(query: Query, name: string, least: number, most: number): number | undefined {
  const text = query[name];
  if (text === undefined) return undefined;
  const value = Number(text);
  if (/^\d{1,15}$/.test(text) && value >= least && value <= most) return value;
  throw restErrors.REQUEST_INVALID({ reason: `${name} must be a whole number from ${least} to ${most}` });
}

/** Some of the words that there are, with commas between them. */
export function someOf<Word extends string>(
  query: Query,
  name: string,
  known: readonly Word[],
): Word[] | undefined {
  return query[name]?.split(',').map((text) => {
    const word = known.find((one) => one === text.trim());
    if (!word) throw restErrors.REQUEST_INVALID({ reason: `a ${name} is one of ${known.join(', ')}` });
    return word;
  });
}

export const moment: JsonSchema = {
  type: 'string',
  description: 'A time: ISO 8601, or milliseconds since 1970.',
};

export function timeOf(query: Query, name: string): number | undefined {
  const text = query[name];
  if (text === undefined) return undefined;
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Date.parse(text);
  if (Number.isFinite(value) && value >= 0) return value;
  throw restErrors.REQUEST_INVALID({
    reason: `${name} must be a time such as 2026-01-31T12:00:00Z, or milliseconds since 1970`,
  });
}

/** Only what is there: `exactOptionalPropertyTypes` and the questions behind take no undefined. */
export function given<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never;
}
