// The processes of a run. An actor is a place (worker-1, producer-2) that a process fills; when it dies, another takes its place a
// moment later, until the curtain falls. All of them end with the conductor, however that ends (see the testbed's janitor).
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { ChildProcess } from 'node:child_process';
import { spawnOwned } from '@sluice/testbed';
import type { Proxy } from '@sluice/testbed';
import type { Arms } from './arm.js';
import { files } from './evidence.js';
import type { FaultLine, Journal } from './evidence.js';
import type { Role } from './failPoints.js';
import type { Part } from './part.js';

const comesBackAfterMs = 150;
const endsWithinMs = 20_000;

export class Actor {
  readonly role: Role;
  readonly name: string;
  readonly proxy: Proxy | undefined;
  /** A fault is at work on it; one at a time. */
  troubled = false;
  #part: Part;
  readonly #faults: Journal<FaultLine>;
  readonly #arms: (actor: Actor) => Arms;
  #child: ChildProcess | undefined;
  #curtain = false;

  constructor(
    role: Role,
    part: Part,
    proxy: Proxy | undefined,
    faults: Journal<FaultLine>,
    arms: (actor: Actor) => Arms,
  ) {
    this.role = role;
    this.name = part.name;
    this.#part = part;
    this.proxy = proxy;
    this.#faults = faults;
    this.#arms = arms;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Plays a last time, alone, and ends by itself. False when it did not. */
  async playLast(changes: Partial<Part>): Promise<boolean> {
    this.#part = { ...this.#part, ...changes };
    this.start();
    const child = this.#child!;
    const code = await new Promise<number | null>((resolve) => {
      child.once('exit', resolve);
      setTimeout(() => child.kill('SIGKILL'), endsWithinMs).unref();
    });
    return code === 0;
  }

  start(): void {
    const log = openSync(join(this.#part.folder, files.log(this.name)), 'a');
    const script = (name: string) => fileURLToPath(new URL(`./${name}.js`, import.meta.url));
    const args = ['--import', script('arm'), script(`${this.role}Process`), JSON.stringify(this.#part)];
    const child = spawnOwned(process.execPath, args, {
      stdio: ['ignore', log, log],
      env: { ...process.env, CHAOS_ARMS: JSON.stringify(this.#arms(this)) },
    });
    closeSync(log);
    this.#child = child;
    const pid = child.pid!;
    const { name, role } = this;
    this.#faults.write({ f: 'birth', at: Date.now(), pid, name, role });
    child.once('exit', (code, signal) => {
      this.#faults.write({ f: 'death', at: Date.now(), pid, name, how: String(signal ?? code) });
      this.#child = undefined;
      if (!this.#curtain) setTimeout(() => this.#comeBack(), comesBackAfterMs);
    });
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /** Asks the process to end in good order; another takes its place. */
  replace(): void {
    if (!this.#child) return;
    this.#faults.write({ f: 'term', at: Date.now(), pid: this.#child.pid!, name: this.name });
    this.#child.kill('SIGTERM');
  }

  /** Asks the process to end in good order, for good; false when it did not in time and had to be killed. */
  async end(): Promise<boolean> {
    this.#curtain = true;
    const child = this.#child;
    if (!child) return true;
    const ended = new Promise<true>((resolve) => {
      child.once('exit', () => resolve(true));
    });
    this.#faults.write({ f: 'term', at: Date.now(), pid: child.pid!, name: this.name });
    child.kill('SIGCONT');
    child.kill('SIGTERM');
    const inTime = await Promise.race([ended, sleep(endsWithinMs, false)]);
    if (!inTime) child.kill('SIGKILL');
    return inTime;
  }

  #comeBack(): void {
    if (!this.#curtain && !this.#child) this.start();
  }
}
