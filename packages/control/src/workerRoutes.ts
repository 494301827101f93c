// Workers and schedules: who works, what comes back; let a worker finish and take nothing more.
import type { ScheduleOptions, ScheduleSpec } from '@sluice/queue';
import type { JsonSchema, Route } from '@sluice/rest';
import { controlErrors } from './errors.js';
import type { ControlParts } from './parts.js';
import { given, pageOf, paging } from './query.js';
import { refuseReserved } from './reserved.js';
import { pageView } from './view.js';

const queueOnly = { queue: { type: 'string' } } satisfies Record<string, JsonSchema>;
const positive: JsonSchema = { type: 'integer', minimum: 1 };

export function workerRoutes({ inspect }: ControlParts): Route[] {
  return [
    {
      method: 'GET',
      url: '/v1/workers',
      needs: 'viewer',
      of: 'installation',
      summary: 'Who works, on which queue, with how many jobs.',
      answers: '200 {items, next, scanned, complete}',
      query: queueOnly,
      handle: async ({ query }) => pageView(await inspect.workers(given({ queue: query['queue'] }))),
    },
    {
      method: 'POST',
      url: '/v1/queues/:queue/workers/:session/drain',
      needs: 'operator',
      of: 'installation',
      audit: 'worker.drain',
      summary:
        'Let a worker finish what it has and take nothing more; with {drain: false} it takes jobs again.',
      answers: '200 {queue, session, drain}: asked, draining, drained or working',
      body: {
        type: ['object', 'null'],
        additionalProperties: false,
        properties: { drain: { type: 'boolean' } },
      },
      handle: async ({ params, request, note }) => {
        const queue = await inspect.open(params['queue']!);
        const session = params['session']!;
        const { drain = true } = (request.body ?? {}) as { drain?: boolean };
        note({ queue: queue.name, session, drain });
        const state = await queue.drain(session, drain);
        if (state === null) throw controlErrors.WORKER_NOT_FOUND({ queue: queue.name, session });
        return { queue: queue.name, session, drain: state };
      },
    },
    {
      method: 'GET',
      url: '/v1/schedules',
      needs: 'viewer',
      of: 'installation',
      summary: 'Jobs that come back, by their next tick.',
      answers: '200 {items, next, scanned, complete}',
      query: { ...queueOnly, ...paging },
      handle: async ({ query }) =>
        pageView(await inspect.schedules({ ...pageOf(query), ...given({ queue: query['queue'] }) })),
    },
    {
      method: 'PUT',
      url: '/v1/queues/:queue/schedules/:name',
      needs: 'operator',
      of: 'installation',
      audit: 'schedule.set',
      summary: 'Set or change a schedule; the same again changes nothing.',
      answers: '200 and the schedule',
      body: {
        type: 'object',
        required: ['when', 'data'],
        additionalProperties: false,
        properties: {
          when: {
            type: 'object',
            description: '{cron, timeZone} or {everyMs, anchorMs}',
            additionalProperties: false,
            properties: {
              cron: { type: 'string', maxLength: 1_000 },
              timeZone: { type: 'string', maxLength: 100 },
              everyMs: positive,
              anchorMs: { type: 'integer', minimum: 0 },
            },
          },
          data: {},
          missed: { enum: ['skip', 'once', 'all'] },
          startMs: positive,
          endMs: positive,
          priority: { type: 'integer', minimum: 0, maximum: 5 },
          group: { type: 'string', minLength: 1, maxLength: 256 },
          unique: { type: 'string', minLength: 1, maxLength: 256 },
          attempts: positive,
          timeoutMs: positive,
        },
      },
      handle: async ({ params, request, note }) => {
        refuseReserved(params['queue']!);
        const queue = await inspect.open(params['queue']!);
        const name = params['name']!;
        const { when, data, ...options } = request.body as ScheduleOptions & {
          when: ScheduleSpec;
          data: unknown;
        };
        note({ queue: queue.name, schedule: name });
        return queue.schedules.set(name, when, data, options);
      },
    },
    {
      method: 'DELETE',
      url: '/v1/queues/:queue/schedules/:name',
      needs: 'operator',
      of: 'installation',
      audit: 'schedule.remove',
      summary: 'End a schedule; the jobs that it made stay.',
      answers: '200 {removed}',
      handle: async ({ params, note }) => {
        const queue = await inspect.open(params['queue']!);
        const name = params['name']!;
        note({ queue: queue.name, schedule: name });
        const removed = await queue.schedules.remove(name);
        if (!removed) throw controlErrors.SCHEDULE_NOT_FOUND({ queue: queue.name, name });
        return { removed };
      },
    },
  ];
}
