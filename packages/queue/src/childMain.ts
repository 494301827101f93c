// The program of a child process: imports the handler's module once, then runs its default export for each job that arrives.
import type { ChildJob, FromChild, JobForChild } from './children.js';
import { GiveUp, isOutcome, RetryAt, Snooze } from './outcome.js';

type ChildHandler = (job: ChildJob) => unknown;

const loaded = import(process.argv[2]!) as Promise<{ default: ChildHandler }>;

process.on('message', (job: JobForChild) => {
  void run(job);
});
// The parent is gone: nobody waits for an answer.
process.on('disconnect', () => process.exit(0));

async function run(job: JobForChild): Promise<void> {
  try {
    const { default: handler } = await loaded;
    const value = await handler({
      ...job,
      progress: (progress) => answer({ kind: 'progress', value: progress }),
      log: (line) => answer({ kind: 'log', line }),
    });
    answer(isOutcome(value) ? describe(value) : { kind: 'result', value });
  } catch (thrown) {
    answer(describe(thrown));
  }
}

function describe(thrown: unknown): FromChild {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  const { name, message, stack = '' } = error;
  const atMs = error instanceof RetryAt ? error.atMs : undefined;
  const delayMs = error instanceof Snooze ? error.delayMs : undefined;
  return { kind: 'error', name, message, stack, gaveUp: error instanceof GiveUp, atMs, delayMs };
}

function answer(message: FromChild): void {
  process.send!(message);
}
