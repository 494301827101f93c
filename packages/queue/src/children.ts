// Child processes for handlers that keep a CPU busy or may take their process down. A child runs one job at a time; its death
// is a failed attempt of that job and nothing else. Children are kept for the next job.
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { queueErrors } from './errors.js';
import type { Job } from './job.js';
import { GiveUp, RetryAt, Snooze } from './outcome.js';

export interface JobForChild {
  id: string;
  queue: string;
  data: unknown;
  attempt: number;
  token: string;
}

/** A job as a handler in a child process sees it. */
export interface ChildJob<Data = unknown> extends JobForChild {
  data: Data;
  progress(value: unknown): void;
  log(line: string): void;
}

export type FromChild =
  | { kind: 'result'; value: unknown }
  | {
      kind: 'error';
      name: string;
      message: string;
      stack: string;
      gaveUp: boolean;
      atMs: number | undefined;
      delayMs: number | undefined;
    }
  | { kind: 'progress'; value: unknown }
  | { kind: 'log'; line: string };

export class ChildPool {
  readonly #module: URL;
  readonly #execArgv: string[];
  readonly #idle: ChildProcess[] = [];
  readonly #all = new Set<ChildProcess>();

  constructor(module: URL, execArgv: string[]) {
    this.#module = module;
    this.#execArgv = execArgv;
  }

  run(job: Job): Promise<unknown> {
    const child = this.#idle.pop() ?? this.#start();
    return new Promise((resolve, reject) => {
      const stop = () => child.kill('SIGKILL');
      const end = () => {
        child.off('message', onMessage);
        child.off('exit', onExit);
        child.off('error', onError);
        job.signal.removeEventListener('abort', stop);
      };
      const onExit = (code: number | null, signal: string | null) => {
        end();
        reject(queueErrors.CHILD_DIED({ reason: signal ? `signal ${signal}` : `exit code ${code}` }));
      };
      const onError = (error: Error) => {
        end();
        child.kill('SIGKILL');
        reject(queueErrors.CHILD_DIED({ reason: error.message }, { cause: error }));
      };
      const onMessage = (message: FromChild) => {
        if (message.kind === 'progress') return void job.progress(message.value).catch(() => {});
        if (message.kind === 'log') return void job.log(message.line).catch(() => {});
        end();
        this.#idle.push(child);
        if (message.kind === 'result') resolve(message.value);
        else reject(reviveError(message));
      };
      child.on('message', onMessage);
      child.on('exit', onExit);
      child.on('error', onError);
      job.signal.addEventListener('abort', stop);
      const { id, queue, data, attempt, token } = job;
      const sent: JobForChild = { id, queue, data, attempt, token };
      child.send(sent);
    });
  }

  close(): void {
    for (const child of this.#all) child.kill('SIGKILL');
  }

  #start(): ChildProcess {
    const child = fork(new URL('./childMain.js', import.meta.url), [this.#module.href], {
      execArgv: this.#execArgv,
      serialization: 'advanced',
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.#all.add(child);
    child.once('exit', () => {
      this.#all.delete(child);
      const at = this.#idle.indexOf(child);
      if (at >= 0) this.#idle.splice(at, 1);
    });
    return child;
  }
}

/** The error as it was thrown in the child, or the outcome that its handler chose. */
function reviveError(message: Extract<FromChild, { kind: 'error' }>): Error {
  if (message.delayMs !== undefined) return new Snooze(message.delayMs);
  if (message.atMs !== undefined) return new RetryAt(message.atMs, message.message);
  const error = message.gaveUp ? new GiveUp(message.message) : new Error(message.message);
  error.name = message.name;
  error.stack = message.stack;
  return error;
}
