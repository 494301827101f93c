// Queues: how they are, how they were; pause, resume, limits.
import type { Rules } from '@sluice/queue';
import { readRules } from '@sluice/queue';
import type { JsonSchema, Route } from '@sluice/rest';
import type { ControlParts } from './parts.js';
import { withOwner } from './reserved.js';
import { seriesRoute } from './seriesRoute.js';

const limit: JsonSchema = { anyOf: [{ type: 'integer', minimum: 1 }, { type: 'null' }] };
const rate: JsonSchema = {
  anyOf: [
    { type: 'null' },
    {
      type: 'object',
      required: ['max', 'perMs'],
      additionalProperties: false,
      properties: { max: { type: 'integer', minimum: 1 }, perMs: { type: 'integer', minimum: 1 } },
    },
  ],
};
const limits: JsonSchema = { maxActive: limit, rate };

export function queueRoutes({ inspect }: ControlParts): Route[] {
  const switches = (['pause', 'resume'] as const).map((word): Route => ({
    method: 'POST',
    url: `/v1/queues/:queue/${word}`,
    needs: 'operator',
    of: 'installation',
    audit: `queue.${word}`,
    summary: word === 'pause' ? 'Start no more jobs; those that run go on.' : 'Start jobs again.',
    answers: '200 {name, paused}',
    handle: async ({ params, note }) => {
      const queue = await inspect.open(params['queue']!);
      note({ queue: queue.name });
      await queue[word]();
      return { name: queue.name, paused: word === 'pause' };
    },
  }));
  return [
    {
      method: 'GET',
      url: '/v1/queues',
      needs: 'viewer',
      of: 'installation',
      summary: 'All queues, with what waits, runs and died in them.',
      answers: '200 {items, atMs}',
      handle: async () => {
        const { atMs, queues } = await inspect.snapshot();
        return { items: queues.map(withOwner), atMs };
      },
    },
    {
      method: 'GET',
      url: '/v1/queues/:queue',
      needs: 'viewer',
      of: 'installation',
      summary: 'One queue, with its limits and a summary of its dead letters.',
      answers: '200 and the queue',
      handle: async ({ params }) => {
        const found = await inspect.queue(params['queue']!);
        return found && withOwner(found);
      },
    },
    ...switches,
    {
      method: 'PATCH',
      url: '/v1/queues/:queue/limits',
      needs: 'operator',
      of: 'installation',
      audit: 'queue.limit',
      summary: 'Change limits; what is not named stays, null removes a limit.',
      answers: '200 and all limits',
      body: {
        type: 'object',
        minProperties: 1,
        additionalProperties: false,
        properties: {
          ...limits,
          perGroup: { type: 'object', additionalProperties: false, properties: limits },
          events: limit,
        },
      },
      handle: async ({ params, request, note }) => {
        const queue = await inspect.open(params['queue']!);
        const rules = request.body as Rules;
        note({ queue: queue.name, limits: JSON.stringify(rules) });
        await queue.limit(rules);
        return readRules(queue);
      },
    },
    seriesRoute(inspect, '/v1/queues/:queue/series', 'a queue', ({ queue }) => ({ queue: queue! })),
    seriesRoute(inspect, '/v1/redis/series', 'Redis'),
    {
      method: 'GET',
      url: '/v1/redis',
      needs: 'viewer',
      of: 'installation',
      summary: 'How Redis is: memory, keys, operations, connections, evictions, persistence.',
      answers: '200 {redis, atMs, problem}',
      handle: async () => {
        const { redis, atMs, problem } = await inspect.snapshot();
        return { redis, atMs, ...(problem && { problem }) };
      },
    },
  ];
}
