// How it was: the same question about a queue, a family of cached values, or Redis.
import type { Inspect, SeriesQuestion } from '@sluice/inspect';
import type { Route } from '@sluice/rest';
import { given, moment, timeOf } from './query.js';

const steps = ['minute', 'hour', 'day'] as const;

export function seriesRoute(
  inspect: Inspect,
  url: string,
  what: string,
  subjectOf: (params: Record<string, string>) => Pick<SeriesQuestion, 'queue' | 'cache'> = () => ({}),
): Route {
  return {
    method: 'GET',
    url,
    needs: 'viewer',
    of: 'installation',
    summary: `The history of ${what}: a point per minute for a day, or per hour or day for 90 days.`,
    answers: '200 {step, stepMs, points, complete}',
    query: { step: { enum: [...steps] }, from: moment, to: moment },
    handle: async ({ params, query }) => {
      const step = steps.find((known) => known === query['step']) ?? 'minute';
      const span = given({ fromMs: timeOf(query, 'from'), toMs: timeOf(query, 'to') });
      return inspect.series({ step, ...span, ...subjectOf(params) });
    },
  };
}
