// The goals that the operation is measured by, in words. The server measures and judges them; see GET /v1/alerts. One that is not named here is
// shown with its own name, spelled as words.
import type { AlertRow, CacheFamily } from './data/shapes.js';
import { decimal, number, percent, span, spelled, unknown } from './format.js';

export interface Target {
  title: string;
  goal: string;
  now: string;
  /** What to do when it is missed. */
  advice: string;
}

/** What describes a target, wherever the server names one. */
export type TargetRow = Pick<AlertRow, 'name' | 'about' | 'keep' | 'limit' | 'unit' | 'value'>;

const fewerLoads = 'Let values live longer, or invalidate fewer of them at once.';

const known: Record<string, Pick<Target, 'title' | 'advice'>> = {
  deadLetters: { title: 'Dead letters', advice: 'Replay those whose cause is mended, and discard the rest.' },
  oldestDeadLetter: { title: 'Oldest dead letter', advice: 'Replay it or discard it.' },
  retrySuccess: {
    title: 'Retries that help',
    advice: 'Mend what they die of; let a handler give up at once where another attempt is no use.',
  },
  averageRetries: { title: 'Retries per job', advice: 'The errors of the retries say what fails.' },
  permanentFailures: { title: 'Permanent failures', advice: 'The most frequent cause comes first.' },
  hitRate: { title: 'Cache hits', advice: fewerLoads },
  queriesSaved: { title: 'Queries saved', advice: fewerLoads },
  storageCallsSaved: { title: 'Storage calls saved', advice: fewerLoads },
  timeSaved: { title: 'Waiting saved', advice: 'Look for the family that is slow to load.' },
  redisMemory: {
    title: 'Memory of Redis',
    advice: 'Raise maxmemory, or discard dead letters and keep results for less long.',
  },
};

export function describeTarget({ name, about, keep, limit, unit, value }: TargetRow): Target {
  const { title, advice } = Object.hasOwn(known, name)
    ? known[name]!
    : { title: spelled(name), advice: about };
  return {
    ...{ title, advice },
    goal: `${keep === 'below' ? 'less' : 'more'} than ${show(limit, unit)}`,
    now: value === null ? unknown : show(value, unit),
  };
}

function show(value: number, unit: string): string {
  switch (unit) {
    case 'share':
      return percent(value, value > 0 && value < 0.1 ? 1 : 0);
    case 'seconds':
      return span(value * 1_000);
    case 'milliseconds':
      return span(value);
    default:
      return Number.isInteger(value) ? number(value) : decimal(value);
  }
}

/**
 * Where a missed target is mended: a place of this page. The server may name itself as others reach it; whoever reads this is here already.
 * Anything that is no place here leads nowhere.
 */
export function placeOf(link: string): string | undefined {
  try {
    const { pathname, search } = new URL(link, 'http://here');
    // Two strokes at the beginning would name another server.
    return pathname.startsWith('/') ? pathname.replace(/^\/+/, '/') + search : undefined;
  } catch {
    return undefined;
  }
}

/** A share of next to nothing says nothing. */
const fewestReads = 100;

/** Whether the reads of a family are as often hits as they should be; null where nothing is asked for, or too little is known. */
export function isHitOften(family: CacheFamily): boolean | null {
  const { hitGoal, hitRate } = family;
  const isKnown = hitGoal !== null && hitRate !== undefined && hitsOf(family) + family.misses >= fewestReads;
  return isKnown ? hitRate >= hitGoal : null;
}

export function hitsOf({ nearHits, redisHits, staleServed }: CacheFamily): number {
  return nearHits + redisHits + staleServed;
}
