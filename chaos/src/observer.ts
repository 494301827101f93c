// Watches the raw keys while a run goes on: which worker sessions there are and when each was gone, when Redis was silent, and when
// everybody had a fresh lease after an outage. From this the checker knows how long a rescue took and whose session was taken.
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { Journal, files } from './evidence.js';
import type { GapLine, SessionLine } from './evidence.js';
import type { Stage } from './stage.js';

const lookEveryMs = 40;
/** Looks that lie further apart than this have a silence between them. */
const silenceMs = 250;

export class Observer {
  readonly #stage: Stage;
  readonly #base: (partition: number) => string;
  readonly #leaseMs: number;
  readonly #sessions: Journal<SessionLine>;
  readonly #gaps: Journal<GapLine>;
  readonly #seen = new Map<string, SessionLine>();
  readonly #graces = new Set<string>();
  #lastLookMs = Date.now();
  #watching: Promise<void> | undefined;
  #stopped = false;

  constructor(stage: Stage, queue: string, leaseMs: number, folder: string) {
    this.#stage = stage;
    this.#base = (partition) => `sluice:{${queue}:${partition}}:`;
    this.#leaseMs = leaseMs;
    this.#sessions = new Journal(join(folder, files.sessions));
    this.#gaps = new Journal(join(folder, files.gaps));
  }

  start(): void {
    this.#watching = this.#watch();
  }

  /** Sessions that are there now, by the process that holds them. */
  get present(): SessionLine[] {
    return [...this.#seen.values()];
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#watching;
    for (const line of this.#seen.values()) this.#sessions.write(line);
  }

  async #watch(): Promise<void> {
    while (!this.#stopped) {
      try {
        for (let partition = 0; partition < this.#stage.partitions; partition++) await this.#look(partition);
        const now = Date.now();
        if (now - this.#lastLookMs > silenceMs)
          this.#gaps.write({ g: 'silence', from: this.#lastLookMs, to: now });
        this.#lastLookMs = now;
      } catch {
        // Redis is away; the gap is written when it is back.
      }
      await sleep(lookEveryMs);
    }
  }

  async #look(partition: number): Promise<void> {
    const raw = this.#stage.raw as Redis;
    const base = this.#base(partition);
    const [live, marked, grace] = await Promise.all([
      raw.zrange(`${base}sessions`, '0', '-1'),
      raw.zrange(`${base}rescuing`, '0', '-1'),
      raw.hget(`${base}cfg`, 'graceUntil'),
    ]);
    const now = Date.now();
    for (const session of live) {
      const [description, ...lanes] = await raw.hmget(`${base}active:${session}`, '#', '#0', '#1');
      if (!description) continue;
      const { pid } = JSON.parse(description) as { pid: number };
      const fresh = { session, partition, pid, usedAt: null, bornAt: now, seenAt: now, goneAt: null };
      const known: SessionLine = this.#seen.get(session) ?? fresh;
      known.seenAt = now;
      if (lanes.some((lane) => lane !== '0:')) known.usedAt ??= now;
      this.#seen.set(session, known);
    }
    const there = new Set([...live, ...marked]);
    for (const [session, line] of this.#seen) {
      if (line.partition !== partition || there.has(session)) continue;
      this.#sessions.write({ ...line, goneAt: now });
      this.#seen.delete(session);
    }
    if (grace !== null && !this.#graces.has(grace)) {
      this.#graces.add(grace);
      this.#gaps.write({ g: 'grace', from: Number(grace) - this.#leaseMs, to: Number(grace) });
    }
  }
}
