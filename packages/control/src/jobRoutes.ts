// Jobs: search, look into one, add, retry, cancel, replay with other data.
import { accessErrors, ownerOf, type Principal } from '@sluice/access';
import type { JobDetail } from '@sluice/inspect';
import type { AddOptions } from '@sluice/queue';
import { restErrors, type JsonSchema, type Route } from '@sluice/rest';
import { controlErrors } from './errors.js';
import { isOwn, ownJob, ownLabels } from './owner.js';
import type { ControlParts } from './parts.js';
import { given, pageOf, paging, someOf } from './query.js';
import { leaveToInstallation, refuseReserved } from './reserved.js';
import { pageView } from './view.js';

const states = ['waiting', 'delayed', 'blocked', 'active', 'done', 'dead', 'cancelled'] as const;
const longestOption = 256;
const text: JsonSchema = { type: 'string', minLength: 1, maxLength: longestOption };
const duration: JsonSchema = { type: 'integer', minimum: 0 };

/** A job as it is answered: its data as JSON, or in base64; neither once it has ended, because nobody keeps them. */
export interface JobReply extends Omit<JobDetail, 'data' | 'payload'>, DataView {}

interface DataView {
  data?: unknown;
  /** Instead of data, when it is binary. */
  base64?: string;
  bytes?: number;
}

export function jobRoutes({ inspect }: ControlParts): Route[] {
  /** Jobs of several tenants may wait for each other; each tenant sees its own. */
  const ownChain = async (principal: Principal, chain: JobDetail['chain']): Promise<JobDetail['chain']> => {
    if (principal.installation) return chain;
    const own = await Promise.all(
      chain.jobs.map(async ({ queue, id }) => {
        const job = await (await inspect.find(queue))?.job(id);
        return job !== undefined && job !== null && isOwn(principal, job.labels);
      }),
    );
    return { ...chain, jobs: chain.jobs.filter((_, index) => own[index]) };
  };
  return [
    {
      method: 'GET',
      url: '/v1/queues/:queue/jobs',
      needs: 'viewer',
      of: 'tenant',
      summary:
        'Search jobs by id, state, payload field, error, cause or owner. A page may be empty and have a next.',
      answers: '200 {items, next, scanned, complete}',
      query: {
        state: { type: 'string', description: `Some of ${states.join(', ')}, with commas.` },
        id: { type: 'string' },
        field: { type: 'string', description: 'A path into the payload: user.id' },
        equals: { type: 'string', description: 'What the field has to be, as text.' },
        error: { type: 'string', description: 'A part of the error that a job died of.' },
        fingerprint: { type: 'string', description: 'A cause of death; see GET /v1/dead/groups.' },
        owner: { type: 'string' },
        ...paging,
      },
      handle: async ({ params, query, principal }) => {
        const { id, error, fingerprint, field, equals, owner } = query;
        if ((field === undefined) !== (equals === undefined))
          throw restErrors.REQUEST_INVALID({ reason: 'field and equals belong together' });
        const labels = { ...ownLabels(principal).labels, ...given({ owner }) };
        const page = await inspect.jobs(params['queue']!, {
          ...pageOf(query),
          ...given({ id, error, fingerprint, states: someOf(query, 'state', states) }),
          ...(field !== undefined && { field: { path: field, equals: equals! } }),
          ...(Object.keys(labels).length > 0 && { labels }),
        });
        return pageView(page);
      },
    },
    {
      method: 'GET',
      url: '/v1/jobs/:id',
      needs: 'viewer',
      of: 'tenant',
      summary: 'The jobs with this id, in whichever queue.',
      answers: '200 {items}',
      handle: async ({ params, principal }) => {
        const items = await inspect.jobsById(params['id']!);
        return { items: items.filter(({ labels }) => isOwn(principal, labels)) };
      },
    },
    {
      method: 'GET',
      url: '/v1/queues/:queue/jobs/:id',
      needs: 'viewer',
      of: 'tenant',
      summary: 'Everything about one job: payload, attempts, timeline, logs, stack, progress, result, chain.',
      answers: '200 and the job; without `data` once it has ended, with `base64` instead where it is no JSON',
      handle: async ({ params, principal }): Promise<JobReply> => {
        const { queue, id } = params as { queue: string; id: string };
        const job = await inspect.job(queue, id);
        if (!job || !isOwn(principal, job.labels)) throw controlErrors.JOB_NOT_FOUND({ queue, id });
        const { payload, data, ...rest } = job;
        const chain = await ownChain(principal, job.chain);
        return { ...rest, chain, ...dataView(data, payload) };
      },
    },
    {
      method: 'POST',
      url: '/v1/queues/:queue/jobs',
      needs: 'operator',
      of: 'tenant',
      audit: 'job.add',
      summary:
        'Add a job. With an id of your own, adding it again changes nothing. Names that a tenant gives (id, unique, group) get the tenant before them.',
      answers: '201 {queue, id, duplicate}',
      body: {
        type: 'object',
        required: ['data'],
        additionalProperties: false,
        properties: {
          data: {},
          id: text,
          delayMs: duration,
          priority: { type: 'integer', minimum: 0, maximum: 5 },
          group: text,
          unique: text,
          attempts: { type: 'integer', minimum: 1, maximum: 1_000 },
          timeoutMs: { type: 'integer', minimum: 1 },
          keepResultMs: duration,
          owner: text,
        },
      },
      handle: async ({ params, request, reply, principal, note }) => {
        const { data, owner, ...options } = request.body as AddOptions & { data: unknown; owner?: string };
        refuseReserved(params['queue']!);
        const queue = await inspect.open(params['queue']!);
        const labels = { tenant: principal.tenant, ...given({ owner: ownerFor(principal, owner) }) };
        const added = await queue.add(data, { ...apart(principal, options), labels });
        note({ queue: queue.name, job: added.id });
        reply.code(201);
        return added;
      },
    },
    {
      method: 'POST',
      url: '/v1/queues/:queue/jobs/:id/retry',
      needs: 'operator',
      of: 'tenant',
      audit: 'job.retry',
      summary: 'Run a job now that waits for its time or has died.',
      answers: '200 {queue, id, was}',
      handle: async ({ params, principal, note }) => {
        const queue = await inspect.open(params['queue']!);
        const id = params['id']!;
        const { state } = await ownJob(principal, queue, id);
        note({ queue: queue.name, job: id, was: state });
        if (state === 'dead') await queue.dead.replay({ ids: [id] });
        else if (state === 'delayed') await queue.retryNow(id);
        else throw controlErrors.JOB_STATE({ id, state, wanted: 'delayed or dead' });
        return { queue: queue.name, id, was: state };
      },
    },
    {
      method: 'POST',
      url: '/v1/queues/:queue/jobs/:id/cancel',
      needs: 'operator',
      of: 'tenant',
      audit: 'job.cancel',
      summary: 'End a job, waiting or running.',
      answers: '200 {queue, id, was}',
      handle: async ({ params, principal, note }) => {
        const queue = await inspect.open(params['queue']!);
        const id = params['id']!;
        await ownJob(principal, queue, id);
        leaveToInstallation(principal, queue.name);
        const was = await queue.cancel(id);
        note({ queue: queue.name, job: id, was: was ?? 'gone' });
        if (was === null) throw controlErrors.JOB_NOT_FOUND({ queue: queue.name, id });
        return { queue: queue.name, id, was };
      },
    },
    {
      method: 'POST',
      url: '/v1/queues/:queue/jobs/:id/replay',
      needs: 'operator',
      of: 'tenant',
      audit: 'job.replay',
      summary:
        'Run a dead job again, with other data if some are given; of a job that is done or cancelled, a copy.',
      answers: '200 {queue, id, was}; the id of the copy where it is one',
      body: { type: ['object', 'null'], additionalProperties: false, properties: { data: {} } },
      handle: async ({ params, request, principal, note }) => {
        const queue = await inspect.open(params['queue']!);
        const id = params['id']!;
        const job = await ownJob(principal, queue, id);
        const { state: was } = job;
        const body = (request.body ?? {}) as { data?: unknown };
        const edited = Object.hasOwn(body, 'data');
        note({ queue: queue.name, job: id, was, edited });
        // A copy is a job that is added.
        if (edited || was !== 'dead') refuseReserved(queue.name);
        if (was === 'dead') {
          if (edited) await queue.dead.replayWith(id, body.data);
          else await queue.dead.replay({ ids: [id] });
          return { queue: queue.name, id, was };
        }
        if ((was !== 'done' && was !== 'cancelled') || (!edited && job.data === undefined))
          throw controlErrors.JOB_STATE({
            id,
            state: was,
            wanted: 'dead, or done or cancelled and remembered',
          });
        const copy = await queue.add(edited ? body.data : job.data, { labels: job.labels });
        return { queue: queue.name, id: copy.id, was };
      },
    },
    {
      method: 'GET',
      url: '/v1/retries',
      needs: 'viewer',
      of: 'tenant',
      summary: 'Jobs that wait for their next attempt, the next one first.',
      answers: '200 {items, next, scanned, complete, summary}',
      query: { queue: { type: 'string' }, ...paging },
      handle: async ({ query, principal }) => {
        const of = { ...given({ queue: query['queue'] }), ...ownLabels(principal) };
        const [page, summary] = await Promise.all([
          inspect.retries({ ...pageOf(query), ...of }),
          inspect.retrySummary(of),
        ]);
        return { ...pageView(page), summary };
      },
    },
  ];
}

/** A tenant's key is the owner of what it adds; keys of the installation add for others. */
function ownerFor(principal: Principal, asked: string | undefined): string | undefined {
  const own = ownerOf(principal);
  if (asked === undefined || asked === own || principal.installation) return asked ?? own;
  throw accessErrors.FORBIDDEN({
    reason: 'a job of a tenant belongs to the key that adds it; leave owner out',
  });
}

/**
 * Names that a tenant chooses are its own: before each stands the tenant, which contains no colon. Otherwise one tenant could take ids
 * that another is about to use, or use up the limit of its group.
 */
function apart({ installation, tenant }: Principal, options: AddOptions): AddOptions {
  if (installation) return options;
  const { id, unique, group } = options;
  const named = (name: string): string => `${tenant}:${name}`;
  return {
    ...options,
    ...(id !== undefined && { id: named(id) }),
    ...(typeof unique === 'string' && { unique: named(unique) }),
    ...(group !== undefined && { group: named(group) }),
  };
}

/** Bytes are no JSON, and what cannot be decoded is shown as the bytes that it is: they go as base64, and say so. */
function dataView(data: unknown, payload: Buffer | undefined): DataView {
  if (!payload) return {};
  const isJson = !(data instanceof Uint8Array) && (data !== undefined || payload.length === 0);
  const shown = isJson ? { data: data ?? null } : { base64: payload.toString('base64') };
  return { ...shown, bytes: payload.length };
}
