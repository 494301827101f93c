/*
 * A process for each system under test. In one process they would spoil each other: they share a Redis client, whose
 * functions the engine compiles for whoever called them last, and a heap that one fills and another has to clean.
 *
 * A booth stays for all rounds of a run, so that what it measures is a process that has been working for a while.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { SystemName } from './contender.js';
import type { Taken, Turn } from './turns.js';
import { errors } from '../errors.js';
import { withDeadline } from '../waiting.js';

const CLOSE_DEADLINE_MS = 10_000;

export type Answer = Taken | { error: string };

export class Booth {
  readonly #system: SystemName;
  readonly #process: ChildProcess;

  constructor(system: SystemName, url: string) {
    this.#system = system;
    const program = fileURLToPath(new URL('./boothMain.js', import.meta.url));
    this.#process = fork(program, [system, url], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  }

  async take(turn: Turn): Promise<Taken> {
    const settled = new AbortController();
    const next = (event: string) =>
      once(this.#process, event, { signal: settled.signal }) as Promise<unknown[]>;
    const answered = next('message').then(([answer]) => answer as Answer);
    const ended = next('exit').then(([code]): Answer => ({
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
