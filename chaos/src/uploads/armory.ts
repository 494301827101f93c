// Which fail points a server gets when it starts. In a run of chance each gets a few, those first that have not fired yet, and what
// happens there is drawn. On a tour each gets its share of those that have not fired, and is killed at the first that it meets: with
// every start fewer are left. Those at the end of an upload come first, because a server that is killed at the beginning of each
// upload never sees the end of one.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { FailAction } from '@sluice/base';
import { JournalReader } from '../evidence.js';
import type { FaultLine } from '../evidence.js';
import { endPoints } from '../firePoints.js';
import type { Random } from '@sluice/testbed/random';
import type { Arms } from './arm.js';
import { files } from './evidence.js';
import type { Player } from './player.js';
import type { GuardName } from './sabotage.js';

const pointsPerProcess = 4;
const lookEveryMs = 100;
/** On a tour, in this order. */
const stages = [/^(complete|part|spill|end|clean)\./, /./];

export interface ArmoryOptions {
  random: Random;
  folder: string;
  leaseMs: number;
  sabotage: GuardName | undefined;
  mode: 'none' | 'chance' | 'tour';
}

export class Armory {
  readonly points = findFailPoints();
  readonly #options: ArmoryOptions;
  readonly #file: string;
  readonly #reader: JournalReader<FaultLine>;
  readonly #fired = new Set<string>();
  readonly #frozen = new Map<number, number>();
  #isOpen = false;
  #endMs = Infinity;

  constructor(options: ArmoryOptions) {
    this.#options = options;
    this.#file = join(options.folder, files.faults);
    this.#reader = new JournalReader(this.#file);
  }

  /** Before, only a tour arms anything: whoever is killed while it starts shows nothing. */
  open(): void {
    this.#isOpen = true;
  }

  /** From then on nothing is armed, and nothing that is armed fires. */
  endAt(endMs: number): void {
    this.#endMs = endMs;
    // Those that were armed on a tour do not know when it ends.
    if (endMs <= Date.now()) endPoints(this.#file);
  }

  /** For the server with this number, from 0. */
  arm(server: number): Arms {
    const { sabotage, mode, random } = this.#options;
    const now = Date.now();
    const arms: Arms = { sabotage, fromMs: 0, untilMs: this.#endMs, points: {}, faults: this.#file };
    // JSON knows no infinity.
    if (arms.untilMs === Infinity) arms.untilMs = Number.MAX_SAFE_INTEGER;
    if (mode === 'none' || now > this.#endMs || (mode === 'chance' && !this.#isOpen)) return arms;
    const unmet = this.unmet();
    const chosen =
      mode === 'tour'
        ? nextStops(unmet, server)
        : random.shuffled(unmet.length > 0 ? unmet : this.points).slice(0, pointsPerProcess);
    for (const point of chosen) arms.points[point] = mode === 'tour' ? 'kill' : this.#drawAction();
    if (mode === 'chance') arms.fromMs = now + random.between(1_500, 5_000);
    return arms;
  }

  /** Points that have not fired yet. */
  unmet(): string[] {
    this.#readFired();
    return this.points.filter((name) => !this.#fired.has(name));
  }

  /** Wakes servers that a point froze, well after their leases, until the end. */
  async thaw(players: readonly Player[]): Promise<void> {
    while (Date.now() < this.#endMs || this.#frozen.size > 0) {
      await sleep(lookEveryMs);
      this.#readFired();
      for (const [pid, at] of this.#frozen) {
        if (Date.now() < at + this.#options.leaseMs + 800) continue;
        this.#frozen.delete(pid);
        players.find((player) => player.pid === pid)?.signal('SIGCONT');
      }
    }
  }

  #drawAction(): FailAction {
    const { random, leaseMs } = this.#options;
    if (random.chance(0.6)) return 'kill';
    return random.pick<FailAction>(['freeze', 'throw', { blockMs: leaseMs * 1.3 }]);
  }

  #readFired(): void {
    for (const line of this.#reader.read()) {
      if (line.f !== 'point') continue;
      this.#fired.add(line.point);
      if (line.action === 'freeze') this.#frozen.set(line.pid, line.at);
    }
  }
}

/** Every second point of the stage, so that two servers do not wait for the same; what is left over is for both. */
function nextStops(unmet: string[], server: number): string[] {
  const stage = stages.find((shape) => unmet.some((name) => shape.test(name)));
  const points = stage ? unmet.filter((name) => stage.test(name)) : [];
  const mine = points.filter((_, i) => i % 2 === server % 2);
  return mine.length > 0 ? mine : points;
}

/** Read from the compiled sources: a list by hand would forget the newest one. */
function findFailPoints(): string[] {
  const folder = new URL('.', import.meta.resolve('@sluice/upload'));
  const names = readdirSync(fileURLToPath(folder)).filter((name) => name.endsWith('.js'));
  const points = names.flatMap((name) => {
    const code = readFileSync(new URL(name, folder), 'utf8');
    return [...code.matchAll(/\bfailPoint\('(\w+\.\w+)'\)/g)].map(([, point]) => point!);
  });
  return [...new Set(points)].sort();
}
