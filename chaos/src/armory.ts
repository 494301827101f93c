// Which fail points a process gets when it starts. In a run of chance each gets a few, those first that have not fired yet, and what
// happens there is drawn. On a tour each gets one, and those that are rarely met, and is killed at the first that it meets,
// until every point has fired once (see tour.ts).
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FailAction } from '@sluice/queue/testing';
import type { Arms } from './arm.js';
import type { Actor } from './cast.js';
import { JournalReader, files } from './evidence.js';
import type { FaultLine } from './evidence.js';
import { endPoints } from './firePoints.js';
import { findFailPoints } from './failPoints.js';
import type { Random } from '@sluice/testbed/random';
import type { GuardName } from './sabotage.js';

/** With more, the frequent ones would always come first; with one, a process may wait for long. */
const pointsPerProcess = 4;
const lookEveryMs = 100;
/** Points that lie on nobody's usual way; those of the sweep need a process that lives for some seconds. */
const rare = /^(sweep|hang|lease|stop|close|repeat)\.|^chain\.taken$/;
const slowest = /^sweep\./;
/** Leaves chains half made, which is what `chain.taken` needs. */
const leavesHalfChains = 'chain.kept';

export interface ArmoryOptions {
  seed: Random;
  folder: string;
  leaseMs: number;
  sabotage: GuardName | undefined;
  mode: 'none' | 'chance' | 'tour';
  /** No point fires later than this after the start of its process. */
  lengthMs: number;
}

export class Armory {
  readonly points = findFailPoints();
  /** On a tour: who waits for which point, and since when. */
  readonly assigned = new Map<Actor, { point: string; sinceMs: number }>();
  readonly #options: ArmoryOptions;
  readonly #file: string;
  readonly #reader: JournalReader<FaultLine>;
  readonly #fired = new Set<string>();
  readonly #frozen = new Map<number, number>();
  #endMs = Infinity;

  constructor(options: ArmoryOptions) {
    this.#options = options;
    this.#file = join(options.folder, files.faults);
    this.#reader = new JournalReader(this.#file);
  }

  /** From then on nothing is armed, and nothing that is armed fires. */
  endAt(endMs: number): void {
    this.#endMs = endMs;
    // Those that were armed on a tour do not know when it ends.
    if (endMs <= Date.now()) endPoints(this.#file);
  }

  arm(actor: Actor): Arms {
    const { sabotage, mode, lengthMs, seed } = this.#options;
    const now = Date.now();
    const arms: Arms = { sabotage, fromMs: 0, untilMs: 0, points: {}, faults: this.#file };
    if (mode === 'none' || now > this.#endMs) return arms;
    this.#readFired();
    for (const point of mode === 'tour' ? this.#nextStop(actor) : this.#draw(actor)) {
      arms.points[point] = mode === 'tour' ? 'kill' : this.#drawAction(actor);
    }
    if (mode === 'chance') arms.fromMs = now + seed.between(400, 1_500);
    arms.untilMs = Math.min(now + lengthMs, this.#endMs);
    return arms;
  }

  /** Points that have not fired yet. */
  unmet(): string[] {
    this.#readFired();
    return this.points.map(({ name }) => name).filter((name) => !this.#fired.has(name));
  }

  /** Wakes processes that a point froze, well after their leases, until the end. */
  async thaw(actors: readonly Actor[]): Promise<void> {
    const pauseMs = this.#options.leaseMs + 800;
    while (Date.now() < this.#endMs || this.#frozen.size > 0) {
      await sleep(lookEveryMs);
      this.#readFired();
      for (const [pid, at] of this.#frozen) {
        if (Date.now() < at + pauseMs) continue;
        this.#frozen.delete(pid);
        actors.find((actor) => actor.pid === pid)?.signal('SIGCONT');
      }
    }
  }

  #ofRole(actor: Actor): string[] {
    return this.points.filter(({ roles }) => roles.includes(actor.role)).map(({ name }) => name);
  }

  #draw(actor: Actor): string[] {
    const mine = this.#ofRole(actor);
    const unmet = mine.filter((name) => !this.#fired.has(name));
    return this.#options.seed.shuffled(unmet.length > 0 ? unmet : mine).slice(0, pointsPerProcess);
  }

  #drawAction(actor: Actor): FailAction {
    const { seed, leaseMs } = this.#options;
    if (actor.role !== 'worker' || seed.chance(0.7)) return 'kill';
    return seed.pick<FailAction>(['freeze', 'throw', { blockMs: leaseMs * 1.3 }]);
  }

  /** A point that nobody has met and, if there is one, nobody waits for. */
  #nextStop(actor: Actor): string[] {
    this.assigned.delete(actor);
    const awaited = new Set([...this.assigned.values()].map(({ point }) => point));
    const unmet = this.#ofRole(actor).filter((name) => !this.#fired.has(name));
    const free = unmet.filter((name) => !awaited.has(name));
    const choice = free.length > 0 ? free : unmet;
    if (choice.length === 0) return actor.role === 'producer' ? [leavesHalfChains] : [];
    const slow = choice.filter((name) => slowest.test(name));
    const point = this.#options.seed.pick(slow.length > 0 ? slow : choice);
    this.assigned.set(actor, { point, sinceMs: Date.now() });
    return [point, ...unmet.filter((name) => name !== point && rare.test(name))];
  }

  #readFired(): void {
    for (const line of this.#reader.read()) {
      if (line.f !== 'point') continue;
      this.#fired.add(line.point);
      if (line.action === 'freeze') this.#frozen.set(line.pid, line.at);
    }
  }
}
