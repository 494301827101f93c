/*
 * A process for each system under test. In one process they would spoil each other: they share libraries, whose
 * functions the engine compiles for whoever called them last, and a heap that one fills and another has to clean.
 *
 * A booth stays for all rounds of a run, so that what it measures is a process that has been working for a while. It
 * takes turns, one at a time; what a turn is, and what comes back, is the suite's own.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { errors } from './errors.js';
import { withDeadline } from './waiting.js';

const CLOSE_DEADLINE_MS = 10_000;

interface Failed {
  error: string;
}

export class Booth<Turn extends { kind: string }, Taken extends object> {
  readonly #system: string;
  readonly #process: ChildProcess;

  /** `program` is a compiled file that calls `takeTurns`; it finds `args` in its `process.argv`. */
  constructor(system: string, program: URL, args: string[]) {
    this.#system = system;
    this.#process = fork(fileURLToPath(program), args, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  }

  get pid(): number {
    return this.#process.pid!;
  }

  async take(turn: Turn): Promise<Taken> {
    const settled = new AbortController();
    const next = (event: string) =>
      once(this.#process, event, { signal: settled.signal }) as Promise<unknown[]>;
    const answered = next('message').then(([answer]) => answer as Taken | Failed);
    const ended = next('exit').then(([code]): Failed => ({
      error: `its process ended with ${String(code)}`,
    }));
    this.#process.send(turn);
    const answer = await Promise.race([answered, ended]);
    settled.abort();
    await Promise.allSettled([answered, ended]);
    if ('error' in answer)
      throw errors.TURN_FAILED({ system: this.#system, turn: turn.kind, why: answer.error });
    return answer;
  }

  async close(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const ended = once(this.#process, 'exit');
    this.#process.disconnect();
    await withDeadline(ended, CLOSE_DEADLINE_MS, `the end of ${this.#system}`).finally(() =>
      this.#process.kill('SIGKILL'),
    );
  }
}

/** The inside of a booth: takes the turns that its parent sends, and ends with its parent. */
export function takeTurns(take: (turn: never) => Promise<object>): void {
  endWithParent();
  process.on('message', (turn) => {
    const send = (answer: object): void => void process.send?.(answer);
    take(turn as never).then(send, (error: unknown) =>
      send({ error: String((error as Error).stack) } satisfies Failed),
    );
  });
}

/** Ends this process when its parent disconnects or is gone, even if that was while the modules were loading. */
export function endWithParent(): void {
  process.once('disconnect', () => process.exit(0));
  if (!process.connected) process.exit(0);
}
