// Runs one operation: the handler of the internal queue.
//
// The job's id is the name under which the queue counts what was moved, in the step that moves it. So a run that ends anywhere, with its process
// or without, is taken up by the next one where the letters are still dead, and nothing is counted twice. While it runs it reports four
// times a second how far it is, and hears in the answer whether it should stop.
import { failPoint } from '@sluice/base';
import { GiveUp } from '@sluice/queue';
import type { AnyQueue, Job, MoveReport } from '@sluice/queue';
import { operationErrors } from './errors.js';
import type { Book, Progress } from './book.js';
import { checkStored, letterChoice } from './request.js';
import type { StoredRequest } from './request.js';

const reportEveryMs = 250;

export type FindQueue = (name: string) => Promise<AnyQueue | undefined> | AnyQueue | undefined;

export async function runOperation(book: Book, find: FindQueue, job: Job<StoredRequest>): Promise<void> {
  const { id } = job;
  const request = trusted(job);
  // Whoever started it may have died before it could write it down.
  await book.begin(id, request, job.createdMs);
  failPoint('operation.begun');
  const queue = await find(request.queue);
  if (!queue) {
    const error = operationErrors.OPERATION_QUEUE_UNKNOWN({ queue: request.queue });
    throw new GiveUp(error.message, { cause: error });
  }
  const run = new Run(book, id, job.signal);
  const report = await run.watch((progress, signal) => move(queue, id, request, progress, signal));
  failPoint('operation.moved');
  if (report.finished) await book.report(id, 'done', { moved: report.total, total: report.total });
  else if (run.isUnwanted) await book.report(id, 'cancelled', { moved: report.total });
  // Otherwise the worker stops, and the job goes back: the next one goes on.
  else throw new Error('the run was interrupted');
}

/**
 * What is asked for, checked once more. It came through Redis, and a letter that was edited comes back from there too: an operation that
 * names another tenant than the job belongs to is not carried out.
 */
function trusted({ data, labels }: Job<StoredRequest>): StoredRequest {
  try {
    return checkStored(data, labels['tenant']);
  } catch (error) {
    throw new GiveUp(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

async function move(
  queue: AnyQueue,
  operation: string,
  request: StoredRequest,
  progress: Progress,
  signal: AbortSignal,
): Promise<MoveReport> {
  const verb = request.kind === 'dead.replay' ? 'replay' : 'discard';
  const choice = letterChoice(request);
  const before = await queue.dead.movedBy(verb, operation);
  const { total: left } = await queue.dead[verb](choice, { dryRun: true });
  Object.assign(progress, { moved: before, total: before + left });
  return queue.dead[verb](choice, {
    operation,
    signal,
    ...(request.perSecond !== undefined && { perSecond: request.perSecond }),
    onProgress: ({ total }) => (progress.moved = total),
  });
}

/** Reports while something runs, and stops it when nobody wants it any more or the job is no longer ours. */
class Run {
  readonly #book: Book;
  readonly #id: string;
  readonly #stop = new AbortController();
  readonly #signal: AbortSignal;
  isUnwanted = false;

  constructor(book: Book, id: string, ours: AbortSignal) {
    this.#book = book;
    this.#id = id;
    this.#signal = AbortSignal.any([ours, this.#stop.signal]);
  }

  async watch(run: (progress: Progress, signal: AbortSignal) => Promise<MoveReport>): Promise<MoveReport> {
    const progress: Progress = { moved: 0 };
    let reporting = this.#report(progress);
    await reporting;
    const timer = setInterval(() => {
      reporting = reporting.then(() => this.#report(progress));
    }, reportEveryMs);
    try {
      return await run(progress, this.#signal);
    } finally {
      clearInterval(timer);
      await reporting;
    }
  }

  /** A report that gets lost is followed by the next one. */
  async #report(progress: Progress): Promise<void> {
    if (this.isUnwanted) return;
    const answer = await this.#book.report(this.#id, 'running', progress).catch(() => 'GO');
    // It has ended already when the run before was killed just before it could say so to its queue.
    if (answer !== 'STOP' && answer !== 'ENDED') return;
    this.isUnwanted = true;
    this.#stop.abort();
  }
}
