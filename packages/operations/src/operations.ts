// The page that users read: operations are started, looked at and cancelled here, and run by whoever calls `work`.
//
// An operation is a job on the internal queue `sluice.operations`, so it has all that jobs have: it waits for a worker, survives the process
// that runs it, is tried again. Its record (book.ts) says how far it is.
import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Queue } from '@sluice/queue';
import type { JobState, Worker, WorkerOptions } from '@sluice/queue';
import { RedisLink } from '@sluice/redis';
import type { RedisTarget } from '@sluice/redis';
import { silentLogger } from '@sluice/base';
import type { Logger } from '@sluice/base';
import { Book, keepMs, mostListed, operationStates, overStates } from './book.js';
import type { Operation, OperationState } from './book.js';
import { operationErrors } from './errors.js';
import { defaultPrefix } from './keys.js';
import { checkRequest, letterChoice } from './request.js';
import type { OperationRequest, StoredRequest } from './request.js';
import { runOperation } from './runner.js';
import type { FindQueue } from './runner.js';

export const operationsQueue = 'sluice.operations';
/** A paced operation may take days. */
const timeoutMs = 30 * 24 * 3_600_000;
const attempts = 100;
const backoff = { type: 'exponential', delayMs: 500, factor: 2, maxMs: 60_000, jitter: 0.5 } as const;
const defaultConcurrency = 4;
const defaultLeaseMs = 5_000;
const defaultLimit = 50;
/** How long a cancellation waits for the run to end, and how often it looks. */
const stopWithinMs = 3_000;
const lookEveryMs = 50;

export interface OperationsOptions {
  redis: string | RedisTarget;
  /** Of its keys and of its queue; `sluice`. */
  prefix?: string;
  /** The queue of this name, or undefined when there is none. */
  queueNamed: FindQueue;
  logger?: Logger;
}

export interface OperationPage {
  /** The latest first. */
  items: Operation[];
  /** Where the next page begins; null at the end. */
  cursor: string | null;
}

export interface OperationPreview {
  total: number;
  sample: { id: string; title: string; lastFailureMs: number }[];
}

/** Restricts what is seen to the operations of one tenant. */
export interface Scope {
  tenant?: string;
}

export interface ListOptions extends Scope {
  states?: readonly OperationState[];
  limit?: number;
  cursor?: string;
}

export class Operations {
  readonly #link: RedisLink;
  readonly #book: Book;
  readonly #queue: Queue<StoredRequest>;
  readonly #find: FindQueue;

  constructor({ redis, prefix = defaultPrefix, queueNamed, logger = silentLogger }: OperationsOptions) {
    this.#link = new RedisLink(redis, { name: 'sluice-operations' });
    this.#book = new Book(this.#link, prefix);
    this.#find = queueNamed;
    this.#queue = new Queue<StoredRequest>(operationsQueue, {
      ...{ redis: this.#link, prefix, attempts, backoff, timeoutMs, logger },
      maxPayloadBytes: 8 * 1024 * 1024,
    });
  }

  /** Resolves with the id when the operation is written down: it happens from then on, whatever happens to this process. */
  async start(request: OperationRequest): Promise<string> {
    const checked = checkRequest(request);
    if (!(await this.#find(checked.queue)))
      throw operationErrors.OPERATION_QUEUE_UNKNOWN({ queue: checked.queue });
    const id = randomBytes(9).toString('base64url');
    const untilMs = await this.#book.nowMs();
    const stored: StoredRequest = { ...checked, untilMs };
    const { tenant, by } = checked;
    const labels = { ...(tenant !== undefined && { tenant }), ...(by !== undefined && { owner: by }) };
    await this.#queue.add(stored, { id: `op-${id}`, rememberMs: keepMs, labels });
    await this.#book.begin(`op-${id}`, stored, untilMs);
    return `op-${id}`;
  }

  /** How many letters it would move, and a few of them. Changes nothing. */
  async preview(request: OperationRequest, sampleSize = 5): Promise<OperationPreview> {
    const checked = checkRequest(request);
    const queue = await this.#find(checked.queue);
    if (!queue) throw operationErrors.OPERATION_QUEUE_UNKNOWN({ queue: checked.queue });
    const choice = letterChoice({ ...checked, untilMs: await this.#book.nowMs() });
    const { total } = await queue.dead.replay(choice, { dryRun: true });
    const sample: OperationPreview['sample'] = [];
    for await (const { id: letter, title, lastFailureMs } of queue.dead.export(choice)) {
      if (sample.length >= sampleSize) break;
      sample.push({ id: letter, title, lastFailureMs });
    }
    return { total, sample };
  }

  /** One operation, with the exact number of letters that it has moved so far; null when nobody knows it. */
  async get(id: string, scope: Scope = {}): Promise<Operation | null> {
    const read = await this.#book.read(id);
    if (!read || !isWithin(scope, read)) return null;
    const operation = await this.#withFate(read);
    const queue = operation.state === 'done' ? undefined : await this.#find(operation.queue);
    if (!queue) return operation;
    const moved = await queue.dead.movedBy(verbOf(operation), id);
    const progress = { ...operation.progress, moved: Math.max(moved, operation.progress.moved) };
    return { ...operation, progress };
  }

  /** The latest operations, up to a thousand in all; with `states`, those of them that are in one of these. */
  async list(options: ListOptions = {}): Promise<OperationPage> {
    const { limit = defaultLimit, cursor = '0', states = operationStates } = options;
    const isRight = Number.isSafeInteger(limit) && limit >= 1 && limit <= mostListed;
    const allowed = `a whole number from 1 to ${mostListed}`;
    if (!isRight) throw operationErrors.OPERATION_INVALID({ field: 'limit', value: limit, allowed });
    if (!/^\d{1,4}$/.test(cursor)) {
      throw operationErrors.OPERATION_INVALID({
        ...{ field: 'cursor', value: cursor, allowed: 'that of the page before' },
      });
    }
    const items: Operation[] = [];
    for (let at = Number(cursor); ;) {
      const ids = await this.#book.ids(at, limit);
      // What its record calls over is over; what it calls running may have failed since.
      const isOther = (state: OperationState | null): boolean =>
        state !== null && overStates.includes(state) && !states.includes(state);
      const others = options.states ? (await this.#book.states(ids)).map(isOther) : [];
      for (const [i, id] of ids.entries()) {
        at++;
        const read = others[i] ? null : await this.#book.read(id);
        const operation = read && isWithin(options, read) ? await this.#withFate(read) : null;
        if (operation && states.includes(operation.state)) items.push(operation);
        if (items.length === limit) return { items, cursor: String(at) };
      }
      if (ids.length < limit) return { items, cursor: null };
    }
  }

  /**
   * Stops an operation between two batches. Resolves with what became of it, and how many letters it has moved: `stopping` is still true
   * when its process did not answer in time, and then whoever takes it up ends it.
   */
  async cancel(id: string, scope: Scope & { by?: string } = {}): Promise<Operation | null> {
    const operation = await this.get(id, scope);
    if (!operation) return null;
    if ((await this.#book.stop(id, scope.by ?? '')) !== 'STOPPING') return this.get(id, scope);
    for (const end = performance.now() + stopWithinMs; performance.now() < end; await pause(lookEveryMs)) {
      if (isEnded(await this.#book.read(id))) break;
      // Nobody runs it: it is over at once.
      if (isIdle((await this.#queue.job(id))?.state) && (await this.#queue.cancel(id)) !== null) {
        const { progress } = (await this.get(id))!;
        await this.#book.report(id, 'cancelled', progress);
      }
    }
    return this.get(id, scope);
  }

  /** An operation that failed goes on where it stopped; false when it has not failed. */
  async resume(id: string, scope: Scope = {}): Promise<boolean> {
    if ((await this.get(id, scope))?.state !== 'failed') return false;
    return (await this.#queue.dead.replay({ ids: [id] })).moved === 1;
  }

  /** Runs operations in this process, a few at once, until `close`. */
  work(options: WorkerOptions = {}): Worker<StoredRequest> {
    const settings = {
      concurrency: defaultConcurrency,
      leaseMs: defaultLeaseMs,
      name: 'operations',
      ...options,
    };
    return this.#queue.work((job) => runOperation(this.#book, this.#find, job), settings);
  }

  async close(deadlineMs?: number): Promise<void> {
    await this.#queue.close(deadlineMs);
    this.#link.close();
  }

  /** The record is written by those who run it; when they cannot any more, the job says what became of it. */
  async #withFate(operation: Operation): Promise<Operation> {
    if (isEnded(operation)) return operation;
    const job = await this.#queue.job(operation.id);
    if (job && ['waiting', 'delayed', 'active'].includes(job.state)) return operation;
    if (job?.state === 'dead') {
      const message = job.error ? `${job.error.name}: ${job.error.message}` : 'it failed';
      return { ...operation, state: 'failed', stopping: false, error: { message } };
    }
    // It has ended; perhaps between the two looks.
    const again = await this.#book.read(operation.id);
    if (again && isEnded(again)) return again;
    return { ...operation, state: 'cancelled', stopping: false };
  }
}

function isWithin({ tenant }: Scope, operation: Operation): boolean {
  return tenant === undefined || operation.tenant === tenant;
}

function isEnded(operation: Operation | null): boolean {
  return operation === null || overStates.includes(operation.state);
}

function isIdle(state: JobState | undefined): boolean {
  return state === 'waiting' || state === 'delayed';
}

function verbOf({ kind }: Operation): 'replay' | 'discard' {
  return kind === 'dead.replay' ? 'replay' : 'discard';
}
