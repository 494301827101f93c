// Which jobs? By id, by state, by a field of the payload, by label, by error; in any combination, at a bounded cost.
//
// An id is looked up. An error is looked for among the dead letters, which are indexed by cause. Everything else is a walk along the
// shelves of the queue (queue.browse), 5,000 jobs per answer at most.
import { labelMatcher } from '@sluice/queue';
import type { AnyQueue, DeadLetter, JobGlance, JobState } from '@sluice/queue';
import { inspectErrors } from './errors.js';
import { checkLimit } from './page.js';
import type { Page } from './page.js';

const defaultLimit = 50;
const maxLimit = 500;
/** Characters of a payload or an error in a row. The job itself has all of it. */
const previewChars = 500;
const maxPathParts = 20;

export interface JobQuestion {
  id?: string;
  states?: readonly JobState[];
  /** A field of the payload: a path with dots, and the text that its value must have. */
  field?: { path: string; equals: string };
  labels?: Readonly<Record<string, string>>;
  /** A part of the name or the message of the error that a job died of. */
  error?: string;
  /** Died of this cause: see `deadGroups`. */
  fingerprint?: string;
  limit?: number;
  cursor?: string;
}

export interface JobRow {
  queue: string;
  id: string;
  state: JobState;
  createdMs?: number;
  attempt?: number;
  priority?: number;
  group?: string;
  labels: Readonly<Record<string, string>>;
  /** Delayed: when it becomes due. Dead: when it died. Done and cancelled: until when it is remembered. */
  atMs?: number;
  /** The beginning of the payload; nothing when it is binary. */
  preview?: string;
  /** Dead: what of, when that was asked for. */
  error?: string;
}

export async function findJobs(queue: AnyQueue, question: JobQuestion): Promise<Page<JobRow>> {
  const { limit = defaultLimit, error, fingerprint } = question;
  checkLimit('limit', limit, maxLimit);
  const matches = matcherOf(question);
  if (question.id !== undefined) return findById(queue, question.id, question, matches);
  if (error !== undefined || fingerprint !== undefined) return findDead(queue, question, limit, matches);
  const { states, cursor } = question;
  const page = await queue.browse({
    limit,
    where: matches,
    ...(states && { states }),
    ...(cursor !== undefined && { cursor }),
  });
  return { ...page, items: page.items.map((job) => toRow(queue.name, job)) };
}

type Matcher = (job: Pick<JobGlance, 'data' | 'labels'>) => boolean;

function matcherOf({ field, labels }: JobQuestion): Matcher {
  const path = field?.path.split('.') ?? [];
  if (path.length > maxPathParts || path.includes('')) {
    const allowed = `names with dots between them, at most ${maxPathParts}`;
    throw inspectErrors.QUESTION_INVALID({ field: 'field.path', value: field!.path, allowed });
  }
  const hasLabels = labelMatcher(labels);
  return (job) => {
    if (!hasLabels(job.labels)) return false;
    return !field || textAt(job.data, path) === field.equals;
  };
}

/** The value at the end of a path as text; undefined when there is none, or when it is a structure. */
function textAt(data: unknown, path: readonly string[]): string | undefined {
  let value = data;
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' || value === null ? `${value}` : undefined;
}

async function findById(
  queue: AnyQueue,
  id: string,
  { states }: JobQuestion,
  matches: Matcher,
): Promise<Page<JobRow>> {
  const job = await queue.job(id);
  const found = job && (!states || states.includes(job.state)) && matches(job);
  const scanned = job ? 1 : 0;
  return { items: found ? [toRow(queue.name, job)] : [], scanned, complete: true, cursor: null };
}

async function findDead(
  queue: AnyQueue,
  { states, error, fingerprint, cursor }: JobQuestion,
  limit: number,
  matches: Matcher,
): Promise<Page<JobRow>> {
  if (states && !states.includes('dead')) return { items: [], scanned: 0, complete: true, cursor: null };
  let scanned = 0;
  const where = (letter: DeadLetter) => {
    scanned++;
    const { name, message } = letter.error;
    return (error === undefined || `${name}: ${message}`.includes(error)) && matches(letter);
  };
  const page = await queue.dead.list({
    limit,
    where,
    ...(fingerprint !== undefined && { fingerprint }),
    ...(cursor !== undefined && { cursor }),
  });
  const items = page.letters.map((letter) => rowOfLetter(queue.name, letter));
  return { items, scanned, complete: page.cursor === null, cursor: page.cursor };
}

function rowOfLetter(queue: string, letter: DeadLetter): JobRow {
  const { id, payload, data, labels, priority, createdMs, group, attemptCount, lastFailureMs } = letter;
  const glance = { id, state: 'dead' as const, payload, data, labels, priority, createdMs };
  return {
    ...toRow(queue, { ...glance, attempt: attemptCount, atMs: lastFailureMs }),
    ...(group !== undefined && { group }),
    error: `${letter.error.name}: ${letter.error.message}`.slice(0, previewChars),
  };
}

function toRow(queue: string, job: JobGlance & { dueMs?: number }): JobRow {
  const { id, state, createdMs, attempt, priority, group, labels } = job;
  const atMs = job.atMs ?? job.dueMs;
  const isText = job.payload && !(job.data instanceof Uint8Array);
  return {
    ...{ queue, id, state, labels },
    ...(createdMs !== undefined && { createdMs }),
    ...(attempt !== undefined && { attempt }),
    ...(priority !== undefined && { priority }),
    ...(group !== undefined && { group }),
    ...(atMs !== undefined && { atMs }),
    ...(isText && { preview: job.payload!.toString('utf8', 0, previewChars * 3).slice(0, previewChars) }),
  };
}
