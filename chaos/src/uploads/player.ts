// The processes of a run: servers as they are started in production, and clients. A player is a place (server-1, client-2) that a
// process fills; when it dies another takes its place a moment later, until the curtain falls. All end with the conductor.
import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { spawnOwned } from '@sluice/testbed';
import type { FaultLine, Journal } from '../evidence.js';
import { files } from './evidence.js';
import type { Place } from './stage.js';

const comesBackAfterMs = 150;
const upWithinMs = 1_000;

export interface Casting {
  role: 'server' | 'client';
  name: string;
  folder: string;
  faults: Journal<FaultLine>;
  /** Of a server. */
  place?: Place;
  /** What node is started with, and which variables are added to the environment. */
  command: () => { args: string[]; env: Record<string, string> };
  endsWithinMs: number;
}

export class Player {
  readonly role: Casting['role'];
  readonly name: string;
  readonly place: Place | undefined;
  /** A fault is at work on it; one at a time. */
  troubled = false;
  /** Of a server: it answers. */
  isUp = false;
  readonly #casting: Casting;
  #child: ChildProcess | undefined;
  #curtain = false;

  constructor(casting: Casting) {
    this.#casting = casting;
    this.role = casting.role;
    this.name = casting.name;
    this.place = casting.place;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  start(): void {
    const { folder, faults, command } = this.#casting;
    const { name, role } = this;
    const log = openSync(join(folder, files.log(name)), 'a');
    const { args, env } = command();
    const child = spawnOwned(process.execPath, args, {
      stdio: ['ignore', log, log],
      env: { ...process.env, ...env },
    });
    closeSync(log);
    this.#child = child;
    const pid = child.pid!;
    if (this.place) void this.#untilUp(child, Number(this.place.env['SLUICE_PORT']));
    faults.write({ f: 'birth', at: Date.now(), pid, name, role });
    child.once('exit', (code, signal) => {
      faults.write({ f: 'death', at: Date.now(), pid, name, how: String(signal ?? code) });
      this.#child = undefined;
      this.isUp = false;
      if (!this.#curtain) setTimeout(() => this.#comeBack(), comesBackAfterMs);
    });
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /** Asks the process to end in good order, for good; false when it did not in time and had to be killed. */
  async end(): Promise<boolean> {
    this.#curtain = true;
    const child = this.#child;
    if (!child) return true;
    const ended = new Promise<true>((resolve) => {
      child.once('exit', () => resolve(true));
    });
    this.#casting.faults.write({ f: 'term', at: Date.now(), pid: child.pid!, name: this.name });
    child.kill('SIGCONT');
    child.kill('SIGTERM');
    const inTime = await Promise.race([
      ended,
      // The process that is waited for keeps us alive; its deadline need not.
      sleep(this.#casting.endsWithinMs, false, { ref: false }),
    ]);
    if (!inTime) child.kill('SIGKILL');
    return inTime;
  }

  /** Ends the process at once, for good. */
  async kill(): Promise<void> {
    this.#curtain = true;
    const child = this.#child;
    if (!child) return;
    const ended = new Promise<void>((resolve) => {
      child.once('exit', () => resolve());
    });
    child.kill('SIGKILL');
    await ended;
  }

  async #untilUp(child: ChildProcess, port: number): Promise<void> {
    while (this.#child === child && !this.isUp) {
      const reply = await fetch(`http://127.0.0.1:${port}/healthz`, {
        signal: AbortSignal.timeout(upWithinMs),
      }).catch(() => undefined);
      if (this.#child === child) this.isUp = reply?.status === 200;
      await sleep(comesBackAfterMs);
    }
  }

  #comeBack(): void {
    if (!this.#curtain && !this.#child) this.start();
  }
}
