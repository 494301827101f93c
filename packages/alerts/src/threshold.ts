// What is held against what. The targets are those that the operation is measured by; the setting may change each of them, or take it
// away with null.
import { defineErrors } from '@sluice/base';

export const alertErrors = defineErrors({
  THRESHOLD_INVALID: {
    message: (d: { name: string; known: string }) =>
      `"${d.name}" is no threshold with a positive number or null; there are ${d.known}`,
    retryable: false,
  },
});

export interface Threshold {
  name: ThresholdName;
  /** `below`: kept while the figure is smaller than the limit; `above`: while it is larger. */
  keep: 'below' | 'above';
  limit: number;
  unit: 'count' | 'share' | 'seconds';
  about: string;
  /** Where it is looked into, behind the address of the server. */
  path: string;
}

const known = {
  deadLetters: {
    ...{ keep: 'below', limit: 50, unit: 'count', path: '/dead' },
    about: 'Jobs that were given up and wait for somebody.',
  },
  oldestDeadLetter: {
    ...{ keep: 'below', limit: 86_400, unit: 'seconds', path: '/dead' },
    about: 'How long the oldest of them has been waiting.',
  },
  retrySuccess: {
    ...{ keep: 'above', limit: 0.9, unit: 'share', path: '/retries' },
    about: 'Of the retries in the last hour, those that were not spent on jobs that died in the end.',
  },
  averageRetries: {
    ...{ keep: 'below', limit: 2, unit: 'count', path: '/retries' },
    about: 'Failed attempts for each job that was done in the last hour.',
  },
  permanentFailures: {
    ...{ keep: 'below', limit: 0.05, unit: 'share', path: '/dead' },
    about: 'Of the jobs that ended in the last hour, those that died.',
  },
  hitRate: {
    ...{ keep: 'above', limit: 0.8, unit: 'share', path: '/cache' },
    about: 'Reads in the last hour that were answered without asking the database.',
  },
  queriesSaved: {
    ...{ keep: 'above', limit: 0.8, unit: 'share', path: '/cache' },
    about: 'Queries that the reads of the last hour would have cost without the cache, and did not.',
  },
  storageCallsSaved: {
    ...{ keep: 'above', limit: 0.8, unit: 'share', path: '/cache' },
    about:
      'Calls of the storage that the reads of the last hour would have cost without the cache, and did not.',
  },
  timeSaved: {
    ...{ keep: 'above', limit: 0.7, unit: 'share', path: '/cache' },
    about:
      'Of the time that the reads of the last hour would have taken without the cache, what they did not.',
  },
  redisMemory: {
    ...{ keep: 'below', limit: 0.9, unit: 'share', path: '/redis' },
    about: 'How much of its memory Redis uses, if it has a limit.',
  },
} as const satisfies Record<string, Omit<Threshold, 'name'>>;

export type ThresholdName = keyof typeof known;
/** Other limits than the usual ones; null switches a threshold off. */
export type Limits = Partial<Record<ThresholdName, number | null>>;

export function thresholds(limits: Readonly<Record<string, unknown>> = {}): Threshold[] {
  for (const [name, limit] of Object.entries(limits)) {
    const isFine = limit === null || (typeof limit === 'number' && limit > 0 && Number.isFinite(limit));
    if (!Object.hasOwn(known, name) || !isFine)
      throw alertErrors.THRESHOLD_INVALID({ name, known: Object.keys(known).join(', ') });
  }
  return (Object.keys(known) as ThresholdName[]).flatMap((name): Threshold[] => {
    const limit = limits[name] === undefined ? known[name].limit : limits[name];
    return limit === null ? [] : [{ ...known[name], name, limit: limit as number }];
  });
}

/** Undefined while nothing is known. */
export function isKept(
  { keep, limit }: Pick<Threshold, 'keep' | 'limit'>,
  value: number | undefined,
): boolean | undefined {
  if (value === undefined) return undefined;
  return keep === 'below' ? value < limit : value > limit;
}

/** A tenth to the good side: a figure that hovers at the limit does not raise and clear all day. */
const margin = 0.1;

export function isKeptWell(
  threshold: Pick<Threshold, 'keep' | 'limit' | 'unit'>,
  value: number | undefined,
): boolean | undefined {
  const { keep, limit, unit } = threshold;
  const room = keep === 'below' ? limit : unit === 'share' ? 1 - limit : limit;
  return isKept({ ...threshold, limit: limit + (keep === 'below' ? -margin : margin) * room }, value);
}
