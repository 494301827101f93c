/**
 * Waits until a condition holds, by asking again and again, and fails with a sentence that says what was awaited.
 *
 * A condition that throws counts as "not yet"; its last error becomes the cause, because "cluster not ready"
 * helps nobody who does not see the refused connection behind it.
 */
import { setTimeout as sleep } from 'node:timers/promises';

export interface WaitOptions {
  timeoutMs?: number;
  everyMs?: number;
}

/** No promise: a machine that is busy with other tests may take many times as long as one that is not. */
const patienceMs = 30_000;

export async function waitUntil(
  what: string,
  condition: () => boolean | Promise<boolean>,
  { timeoutMs = patienceMs, everyMs = 25 }: WaitOptions = {},
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  let lastError: unknown;
  while (performance.now() < deadline) {
    try {
      if (await condition()) return;
      lastError = undefined;
    } catch (error) {
      lastError = error;
    }
    await sleep(everyMs);
  }
  throw new Error(`gave up after ${timeoutMs} ms waiting until ${what}`, { cause: lastError });
}
