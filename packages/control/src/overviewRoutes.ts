// Everything at a glance, once or live.
import { accessErrors } from '@sluice/access';
import { openStream, restErrors, type Route } from '@sluice/rest';
import { topics, type Live, type Topic } from './live.js';
import type { OverviewSource } from './overview.js';

export function overviewRoutes(overview: OverviewSource, live: Live): Route[] {
  return [
    {
      method: 'GET',
      url: '/v1/overview',
      needs: 'viewer',
      of: 'installation',
      summary:
        'Everything at a glance: queues, dead letters, retries, cache, Redis, uploads, events, and what needs attention.',
      answers: '200 and the overview',
      handle: () => overview.latest(),
    },
    {
      method: 'GET',
      url: '/v1/live',
      needs: 'viewer',
      of: 'tenant',
      summary: 'Live updates as server-sent events. Last-Event-ID brings the events that were missed.',
      answers: '200 text/event-stream',
      query: { topics: { type: 'string', description: `Some of ${topics.join(', ')}, with commas.` } },
      headers: { 'Last-Event-ID': 'Where to go on.' },
      handle: async (call) => {
        const { request, reply, principal, query } = call;
        const chosen = topicsOf(query['topics'] ?? 'events,uploads');
        if (chosen.has('overview') && !principal.installation)
          throw accessErrors.FORBIDDEN({ reason: 'the overview needs a key of the installation' });
        const asked = request.headers['last-event-id'];
        const after = typeof asked === 'string' && /^\d{1,15}-\d{1,15}$/.test(asked) ? asked : undefined;
        let stop = (): void => {};
        const stream = openStream(call, () => stop());
        stop = live.watch({
          principal,
          topics: chosen,
          ...(after !== undefined && { after }),
          begin: (id) => stream.begin(id),
          send: (event, data, id) => stream.send(event, data, id),
        });
        return reply;
      },
    },
  ];
}

function topicsOf(list: string): Set<Topic> {
  return new Set(
    list.split(',').map((word) => {
      const topic = topics.find((known) => known === word.trim());
      if (!topic) throw restErrors.REQUEST_INVALID({ reason: `topics are ${topics.join(', ')}` });
      return topic;
    }),
  );
}
