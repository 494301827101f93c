// Dead letters: what jobs died of, letters one by one, edit, export; replay and discard many of them as an operation.
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { OperationRequest } from '@sluice/operations';
import { queueErrors, type DeadLetter } from '@sluice/queue';
import type { Call, JsonSchema, Route } from '@sluice/rest';
import { restErrors } from '@sluice/rest';
import { controlErrors } from './errors.js';
import { isOwn, ownLabels } from './owner.js';
import type { ControlParts } from './parts.js';
import { given, moment, pageOf, paging, timeOf } from './query.js';
import { refuseReserved } from './reserved.js';

const largestGroups = 500;
const maxIds = 10_000;
const fastest = 1_000_000;
/** Of a choice, in the audit log. */
const longestNote = 500;
const text: JsonSchema = { type: 'string', minLength: 1, maxLength: 1_000 };
const time: JsonSchema = { type: 'integer', minimum: 0 };

/** Conditions of a search, and of what is replayed or discarded. */
const filter: Record<string, JsonSchema> = {
  fingerprint: { type: 'string', description: 'A cause; see GET /v1/dead/groups.' },
  text: { type: 'string', description: 'A part of the error.' },
  from: moment,
  to: moment,
};

const choice: JsonSchema = {
  description: '"all", {ids: […]}, or conditions: {fingerprint, text, from, to} (times in ms).',
  anyOf: [
    { const: 'all' },
    {
      type: 'object',
      required: ['ids'],
      additionalProperties: false,
      properties: { ids: { type: 'array', minItems: 1, maxItems: maxIds, items: text } },
    },
    {
      type: 'object',
      minProperties: 1,
      additionalProperties: false,
      properties: { fingerprint: text, text, from: time, to: time },
    },
  ],
};

type Choice = 'all' | { ids: string[] } | Conditions;

interface Conditions {
  fingerprint?: string;
  text?: string;
  from?: number;
  to?: number;
}

export function deadRoutes({ inspect, operations }: ControlParts): Route[] {
  return [
    {
      method: 'GET',
      url: '/v1/dead/groups',
      needs: 'viewer',
      of: 'tenant',
      summary: 'What jobs died of, most frequent first, of one queue or of all.',
      answers: '200 {items, letters, complete}',
      query: { queue: { type: 'string' }, limit: { type: 'integer', minimum: 1, maximum: largestGroups } },
      handle: async ({ query, principal }) => {
        const { limit } = pageOf(query);
        return inspect.deadGroups({
          limit,
          trend: true,
          ...given({ queue: query['queue'] }),
          ...ownLabels(principal),
        });
      },
    },
    {
      method: 'GET',
      url: '/v1/queues/:queue/dead',
      needs: 'viewer',
      of: 'tenant',
      summary: 'Dead letters, newest first.',
      answers: '200 {items, next, complete}',
      query: { ...filter, ...paging },
      handle: async ({ params, query, principal }) => {
        const queue = await inspect.open(params['queue']!);
        const { limit, cursor } = pageOf(query);
        const page = await queue.dead.list({
          limit,
          ...conditions(query),
          ...given({ cursor }),
          ...ownLabels(principal),
        });
        return { items: page.letters, next: page.cursor, complete: page.cursor === null };
      },
    },
    {
      method: 'GET',
      url: '/v1/queues/:queue/dead/export',
      needs: 'viewer',
      of: 'tenant',
      summary: 'Every dead letter that matches, one JSON object per line.',
      answers: '200 application/x-ndjson',
      query: filter,
      handle: async ({ params, query, principal, reply }) => {
        const queue = await inspect.open(params['queue']!);
        const wanted = { ...conditions(query), ...ownLabels(principal) };
        const letters = queue.dead.export(Object.keys(wanted).length > 0 ? wanted : 'all');
        reply.type('application/x-ndjson').header('Cache-Control', 'no-store');
        return reply.send(Readable.from(lines(letters)));
      },
    },
    {
      method: 'GET',
      url: '/v1/queues/:queue/dead/:id',
      needs: 'viewer',
      of: 'tenant',
      summary: 'One dead letter: payload, error, stack, attempts.',
      answers: '200 and the letter, with an ETag',
      handle: async (call) => {
        const letter = await ownLetter(call);
        call.reply.header('ETag', etagOf(letter));
        return letter;
      },
    },
    {
      method: 'PATCH',
      url: '/v1/queues/:queue/dead/:id',
      needs: 'operator',
      of: 'tenant',
      audit: 'dead.edit',
      summary: 'Give a dead letter other data; refused when somebody else changes it at the same moment.',
      answers: '200 and the letter; 409 if it is not the one of If-Match any more',
      headers: {
        'If-Match': 'The ETag of the letter that was read; one that changed since then is not touched.',
      },
      body: { type: 'object', required: ['data'], additionalProperties: false, properties: { data: {} } },
      handle: async (call) => {
        const letter = await ownLetter(call);
        const queue = await inspect.open(call.params['queue']!);
        call.note({ queue: queue.name, job: letter.id });
        refuseReserved(queue.name);
        const wanted = call.request.headers['if-match'];
        if (wanted !== undefined && wanted !== '*' && wanted !== etagOf(letter))
          throw queueErrors.EDIT_CONFLICT({ id: letter.id });
        await queue.dead.edit(letter, (call.request.body as { data: unknown }).data);
        return ownLetter(call);
      },
    },
    ...(['replay', 'discard'] as const).map((word): Route => ({
      method: 'POST',
      url: `/v1/queues/:queue/dead/${word}`,
      needs: 'operator',
      of: 'tenant',
      audit: `dead.${word}`,
      summary:
        word === 'replay'
          ? 'Run dead letters again, oldest first, in the background. With dryRun: only say how many.'
          : 'Give dead letters up for good, in the background. With dryRun: only say how many.',
      answers: '202 and the operation; 200 {total, sample} with dryRun',
      body: {
        type: 'object',
        required: ['choice'],
        additionalProperties: false,
        properties: {
          choice,
          perSecond: { type: 'integer', minimum: 1, maximum: fastest },
          dryRun: { type: 'boolean' },
        },
      },
      handle: async ({ params, request, reply, principal, note }) => {
        const body = request.body as { choice: Choice; perSecond?: number; dryRun?: boolean };
        const queue = await inspect.open(params['queue']!);
        const wanted: OperationRequest = {
          kind: `dead.${word}`,
          queue: queue.name,
          choice: choiceOf(body.choice),
          ...given({ perSecond: body.perSecond }),
          ...(!principal.installation && { tenant: principal.tenant }),
          by: principal.key?.name ?? principal.via,
        };
        const chosen = JSON.stringify(body.choice).slice(0, longestNote);
        note({ queue: queue.name, dryRun: body.dryRun === true, choice: chosen });
        if (body.dryRun) return { dryRun: true, ...(await operations.preview(wanted)) };
        const id = await operations.start(wanted);
        note({ operation: id });
        reply.code(202);
        return operations.get(id);
      },
    })),
  ];

  async function ownLetter({ params, principal }: Call): Promise<DeadLetter> {
    const queue = await inspect.open(params['queue']!);
    const letter = await queue.dead.get(params['id']!);
    if (!letter || !isOwn(principal, letter.labels))
      throw controlErrors.LETTER_NOT_FOUND({ queue: queue.name, id: params['id']! });
    return letter;
  }
}

/** Another one for other data, and for a letter that was replayed and died again. */
function etagOf({ payload, lastFailureMs }: DeadLetter): string {
  const digest = createHash('sha256').update(`${lastFailureMs} `).update(payload).digest('hex');
  return `"${digest.slice(0, 32)}"`;
}

function conditions(query: Record<string, string | undefined>): Conditions {
  const [from, to] = [timeOf(query, 'from'), timeOf(query, 'to')];
  if (from !== undefined && to !== undefined && from > to)
    throw restErrors.REQUEST_INVALID({ reason: 'from must not be later than to' });
  return given({ fingerprint: query['fingerprint'], text: query['text'], from, to });
}

function choiceOf(choice: Choice): OperationRequest['choice'] {
  if (choice === 'all' || 'ids' in choice) return choice;
  const { from, to, ...rest } = choice;
  return { ...rest, ...given({ fromMs: from, toMs: to }) };
}

async function* lines(letters: AsyncIterable<DeadLetter>): AsyncGenerator<string> {
  for await (const letter of letters) yield `${JSON.stringify(letter)}\n`;
}
