// A plan of faults and how it is carried out, for every kind of run: which faults there are, and what they do, is said elsewhere
// (`faults.ts`, `uploads/faults.ts`). A plan is drawn from the seed: times, faults, and a generator of its own for each strike.
import { setTimeout as sleep } from 'node:timers/promises';
import type { FaultLine, Journal } from './evidence.js';
import type { Random } from '@sluice/testbed/random';

export interface Fault<S> {
  what: string;
  /** How often it is drawn, beside the others. */
  share: number;
  /** Hits all processes at once; two of these never overlap. */
  everybody?: true;
  strike: (scene: S, random: Random) => Promise<void>;
}

export interface Strike<N extends string> {
  atMs: number;
  name: N;
  random: Random;
}

/** Between two strikes, at least and at most. */
export type Pauses = readonly [shortest: number, longest: number];

export interface Pace {
  firstStrikeMs: number;
  pausesMs: Pauses;
}

/** The same seed, length and faults make the same plan. */
export function planStrikes<N extends string>(
  faults: Readonly<Record<N, { share: number }>>,
  random: Random,
  lengthMs: number,
  names: readonly N[],
  { firstStrikeMs, pausesMs }: Pace,
): Strike<N>[] {
  const strikes: Strike<N>[] = [];
  let bag: N[] = [];
  for (let atMs = firstStrikeMs; atMs < lengthMs && names.length > 0; atMs += random.between(...pausesMs)) {
    if (bag.length === 0)
      bag = random.shuffled(names.flatMap((name) => Array<N>(faults[name].share * 2).fill(name)));
    strikes.push({ atMs, name: bag.pop()!, random: random.fork(String(atMs)) });
  }
  return strikes;
}

export interface Struck<N extends string> {
  counts: Map<N, number>;
  /** Strikes that did not do what they should: `name: why`. Seldom one may; a server that was just killed cannot be asked. */
  misses: string[];
}

/** Carries a plan out. Resolves when the last strike has been mended. */
export async function strikeAll<N extends string, S extends StruckScene>(
  faults: Readonly<Record<N, Fault<S>>>,
  scene: S,
  strikes: readonly Strike<N>[],
): Promise<Struck<N>> {
  const began = Date.now();
  const counts = new Map<N, number>();
  const misses: string[] = [];
  const underWay: Promise<void>[] = [];
  let everybodyHit = false;
  for (const { atMs, name, random } of strikes) {
    await sleep(Math.max(0, began + atMs - Date.now()));
    const fault: Fault<S> = faults[name];
    if (fault.everybody && everybodyHit) continue;
    if (fault.everybody) everybodyHit = true;
    counts.set(name, (counts.get(name) ?? 0) + 1);
    const strike = async () => {
      const from = Date.now();
      await fault.strike(scene, random).catch((error: unknown) => {
        misses.push(`${name}: ${String(error)}`);
        scene.say(misses.at(-1)!);
      });
      if (fault.everybody) everybodyHit = false;
      else if (!scene.notesAll) return;
      scene.faults.write({ f: 'fault', name, from, to: Date.now() });
    };
    underWay.push(strike());
  }
  await Promise.all(underWay);
  return { counts, misses };
}

/** What strikes need of a scene: where they are written down, and who is told. */
export interface StruckScene {
  faults: Journal<FaultLine>;
  say: (line: string) => void;
  /** Also what does not hit everybody is written down without a process: its checker does not ask who was hit. */
  notesAll?: true;
}
