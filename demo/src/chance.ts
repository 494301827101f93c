// Chance, as work has it: most things go well, some take long, a few go wrong.
import { setTimeout as sleep } from 'node:timers/promises';

export function between(least: number, most: number): number {
  return least + Math.random() * (most - least);
}

export function happens(share: number): boolean {
  return Math.random() < share;
}

export function oneOf<T>(choices: readonly T[]): T {
  return choices[Math.floor(Math.random() * choices.length)]!;
}

/** Calls again and again, so often per second on average, until the signal; what fails is told and does not end it. */
export async function often(
  perSecond: number,
  signal: AbortSignal,
  act: () => Promise<unknown>,
  onProblem: (error: unknown) => void,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await act();
    } catch (error) {
      if (!signal.aborted) onProblem(error);
    }
    await sleep(between(0.5, 1.5) * (1_000 / perSecond), undefined, { signal }).catch(() => {});
  }
}
