// How bad is it, and what mends it? The server says what is wrong; the page says in which order it is read and what to do. A kind of trouble that
// came later and is not in this table is shown with the server's words, counts as broken, and leads to its queue.
import type { Attention } from './data/shapes.js';
import { to } from './place.js';
import { describeTarget, placeOf } from './targets.js';

export type Severity = 'bad' | 'warn' | 'neutral';

export interface Trouble {
  severity: Severity;
  /** What to do about it; not where a button beside it does so. */
  advice?: string;
  /** Where that is done. */
  place?: (queue: string) => string;
  link?: string;
}

const redis = { place: () => '/redis', link: 'See Redis' };

const known: Record<string, Trouble> = {
  REDIS_DOWN: {
    ...redis,
    severity: 'bad',
    advice: 'Start it again, or let SLUICE_REDIS_URL name the one that runs.',
  },
  REDIS_CANNOT_WRITE: {
    ...redis,
    severity: 'bad',
    advice: 'Its disk is full or not writable; until that is mended, a crash loses jobs.',
  },
  REDIS_EVICTS: {
    ...redis,
    severity: 'bad',
    advice: 'Set maxmemory-policy to noeviction and give it more memory.',
  },
  REDIS_MAY_EVICT: { ...redis, severity: 'bad', advice: 'Set maxmemory-policy to noeviction.' },
  REDIS_KEEPS_NO_FILE: { ...redis, severity: 'warn', advice: 'Set appendonly to yes.' },
  REDIS_NEARLY_FULL: {
    ...redis,
    severity: 'warn',
    advice: 'Raise maxmemory, or discard dead letters and keep results for less long.',
  },
  NO_WORKERS: {
    severity: 'bad',
    advice: 'Start a worker: SLUICE_HANDLERS=./handlers.js npm start',
    place: (queue) => to('workers', { queue }),
    link: 'See the workers',
  },
  JOBS_FAIL: {
    severity: 'bad',
    advice: 'Its page says of what. Paused, it wastes no attempt until that is mended.',
    place: (queue) => to('queues', queue),
    link: 'See the queue',
  },
  ALERT_RAISED: { severity: 'bad' },
  TARGET_MISSED: { severity: 'warn' },
  TARGET_CLOSE: { severity: 'warn' },
  CACHE_WITHOUT_REDIS: {
    severity: 'warn',
    advice: 'Readers went to the database meanwhile.',
    place: () => '/cache',
    link: 'See the cache',
  },
  DEAD_LETTERS: { severity: 'warn', place: (queue) => to('dead', { queue }), link: 'See the letters' },
  LONG_WAIT: {
    severity: 'warn',
    advice: 'Start more workers, or raise its limits.',
    place: (queue) => to('queues', queue),
    link: 'See its limits',
  },
  OUTBOX_LATE: {
    severity: 'warn',
    advice: 'The relay of a running server publishes them; its log says what keeps it.',
    place: () => '/events',
    link: 'See the outbox',
  },
  QUEUE_PAUSED: { severity: 'neutral' },
};

/** What nobody has described is a part that could not be read: broken. */
export function troubleOf(item: Attention): Required<Omit<Trouble, 'place'>> & { href: string } {
  const { code, queue, target } = item;
  const {
    severity,
    advice = '',
    place,
    link,
  } = Object.hasOwn(known, code)
    ? known[code]!
    : code.startsWith('REDIS')
      ? { ...redis, severity: 'bad' as const }
      : { severity: 'bad' as const };
  if (target)
    return {
      ...{ severity, advice: describeTarget(target).advice },
      ...{ href: placeOf(target.link) ?? '/', link: 'See why' },
    };
  const usual = queue === undefined ? '/queues' : to('queues', queue);
  return {
    severity,
    advice,
    href: place?.(queue ?? '') ?? usual,
    link: link ?? (queue === undefined ? 'See the queues' : 'See the queue'),
  };
}

const order: readonly Severity[] = ['bad', 'warn', 'neutral'];

export function rank(items: readonly Attention[]): Attention[] {
  const place = (item: Attention): number => order.indexOf(troubleOf(item).severity);
  return [...items].sort((a, b) => place(a) - place(b));
}

/** How many of each; what keeps the server from looking is broken, and is not among its own findings. */
export function tally(
  items: readonly Attention[],
  problems: readonly Pick<Attention, 'code' | 'queue'>[] = [],
): Record<Severity, number> {
  const counts = { bad: 0, warn: 0, neutral: 0 };
  for (const item of items) counts[troubleOf(item).severity]++;
  const own = new Set(items.map(({ code, queue }) => `${code} ${queue ?? ''}`));
  counts.bad += problems.filter(({ code, queue }) => !own.has(`${code} ${queue ?? ''}`)).length;
  return counts;
}
