// The goals that the operation is measured by, in words. The server measures and judges them; see GET /v1/alerts. One that is not named here is
// shown with its own name, spelled as words.
import type { AlertRow, CacheFamily } from './data/shapes.js';
import { decimal, number, percent, span, spelled, unknown } from './format.js';

export interface Target {
  title: string;
  goal: string;
  now: string;
}

const titles: Record<string, string> = {
  deadLetters: 'Dead letters',
  oldestDeadLetter: 'Oldest dead letter',
  retrySuccess: 'Retries that help',
  averageRetries: 'Retries per job',
  permanentFailures: 'Permanent failures',
  hitRate: 'Cache hits',
  queriesSaved: 'Queries saved',
  timeSaved: 'Waiting saved',
  redisMemory: 'Memory of Redis',
};

export function describeTarget({ name, keep, limit, unit, value }: AlertRow): Target {
  return {
    title: Object.hasOwn(titles, name) ? titles[name]! : spelled(name),
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

export function hitsOf({ nearHits, redisHits, staleServed }: CacheFamily): number {
  return nearHits + redisHits + staleServed;
}
