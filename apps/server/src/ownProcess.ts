/**
 * A server program of our own, whichever it is: started, kept running, stopped in order.
 *
 * - One that an earlier, killed server left behind is found by its mark and ended in good order: it holds the newest data.
 * - One that dies under us is started again, with growing pauses, until we are stopped.
 * - One that does not stop by the deadline is killed.
 */
import type { ChildProcess } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { sleep, type Logger } from '@sluice/base';
import type { FolderLock } from './folderLock.js';
import { markOf, readMark, stillRuns, type ProcessMark } from './processMark.js';

/** Below the range the kernel gives to outgoing connections: nobody takes the port while the program restarts. */
const LOWEST_PORT = 12_000;
const PORT_COUNT = 20_000;
const PORT_TRIES = 100;
const ORPHAN_STOP_MS = 30_000;
const LOOK_EVERY_MS = 50;
const FIRST_RESTART_PAUSE_MS = 200;
const LONGEST_RESTART_PAUSE_MS = 10_000;
/** One that ran this long was healthy; its next death begins with the shortest pause again. */
const HEALTHY_AFTER_MS = 60_000;

export interface OwnProgram {
  /** What people call it. */
  title: string;
  /** Ends it in good order. */
  stopSignal: NodeJS.Signals;
  /** Where its process is marked. */
  markFile: string;
  /** Where it is reached; noted beside the mark, for tools on the same machine. */
  url?: string;
  lock: FolderLock;
  logger: Logger;
  spawn: () => ChildProcess;
  /** Resolves when it can be used, rejects when it ends before. */
  untilReady: (child: ChildProcess) => Promise<void>;
}

export class OwnProcess {
  private child: ChildProcess | undefined;
  private stopping = false;
  private pauseMs = FIRST_RESTART_PAUSE_MS;
  /** The restart under way, so that a stop can wait for it. */
  private revival: Promise<void> | undefined;
  private readonly wakeUp = new AbortController();

  constructor(private readonly program: OwnProgram) {}

  get pid(): number | undefined {
    return this.child?.pid;
  }

  /** Starts the process and waits until it can be used. */
  async launch(): Promise<void> {
    const { spawn, untilReady, markFile, stopSignal, url } = this.program;
    const child = spawn();
    this.child = child;
    if (child.pid !== undefined) writeFileSync(markFile, JSON.stringify({ ...markOf(child.pid), url }));
    // If this process ends without its stop, the program still gets the chance to end in order.
    const farewell = (): void => void child.kill(stopSignal);
    process.once('exit', farewell);
    child.once('exit', () => {
      process.off('exit', farewell);
      this.child = undefined;
    });
    await untilReady(child);
    const began = performance.now();
    child.once('exit', (code, signal) => {
      if (!this.stopping) this.revival = this.revive(performance.now() - began, code ?? signal);
    });
  }

  async stop(deadlineMs: number): Promise<void> {
    const { title, stopSignal, markFile, lock, logger } = this.program;
    this.stopping = true;
    this.wakeUp.abort();
    const child = this.child;
    if (child) {
      const ended = new Promise<void>((resolve) => {
        child.once('exit', () => resolve());
      });
      child.kill(stopSignal);
      const impatience = setTimeout(() => {
        logger.warn({ deadlineMs }, `${title} did not stop in time and is killed`);
        child.kill('SIGKILL');
      }, deadlineMs);
      await ended;
      clearTimeout(impatience);
    }
    await this.revival;
    rmSync(markFile, { force: true });
    lock.release();
  }

  private async revive(ranMs: number, reason: unknown): Promise<void> {
    const { title, logger } = this.program;
    if (ranMs > HEALTHY_AFTER_MS) this.pauseMs = FIRST_RESTART_PAUSE_MS;
    while (!this.stopping) {
      logger.error({ reason, pauseMs: this.pauseMs }, `${title} ended by itself and is started again`);
      await sleep(this.pauseMs, this.wakeUp.signal).catch(() => {});
      if (this.stopping) return;
      this.pauseMs = Math.min(this.pauseMs * 2, LONGEST_RESTART_PAUSE_MS);
      try {
        await this.launch();
        return;
      } catch (error) {
        reason = error;
      }
    }
  }
}

/** Ends the program of a server that was killed before it could do so itself. `unmarked` finds one that has no mark yet. */
export async function endOrphan(
  { title, stopSignal, markFile, logger }: Pick<OwnProgram, 'title' | 'stopSignal' | 'markFile' | 'logger'>,
  unmarked?: () => ProcessMark | undefined,
): Promise<void> {
  const orphan = readMark(markFile) ?? unmarked?.();
  if (orphan && stillRuns(orphan)) {
    logger.warn({ pid: orphan.pid }, `the ${title} of an earlier run is still there and is stopped first`);
    process.kill(orphan.pid, stopSignal);
    const deadline = performance.now() + ORPHAN_STOP_MS;
    while (stillRuns(orphan) && performance.now() < deadline) await sleep(LOOK_EVERY_MS);
    if (stillRuns(orphan)) process.kill(orphan.pid, 'SIGKILL');
    while (stillRuns(orphan)) await sleep(LOOK_EVERY_MS);
  }
  rmSync(markFile, { force: true });
}

/** A free port on loopback; `none` makes the error when there is none. */
export async function freePort(none: (reason: string) => Error): Promise<number> {
  for (let tries = 0; tries < PORT_TRIES; tries++) {
    const port = LOWEST_PORT + Math.floor(Math.random() * PORT_COUNT);
    const free = await new Promise<boolean>((resolve) => {
      const probe = createServer();
      probe.once('error', () => resolve(false));
      probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
    });
    if (free) return port;
  }
  throw none(`no free port found in ${PORT_TRIES} tries`);
}
