/**
 * The figures of all queues, for a process that has files: also of those that it does not work on, and of Sluice's own, whose dead letters
 * would be seen nowhere else. Two calls for each queue; the answer is given again until twenty times its cost has passed, so that nobody
 * who scrapes often, and no number of queues, costs more than a twentieth of the time.
 */
import { withDeadline } from '@sluice/base';
import { prometheusText, type AnyQueue } from '@sluice/queue';
import type { MetricsSource } from './http.js';

/** Prometheus gives up after ten seconds. */
const DEADLINE_MS = 2_000;
const SHARE_OF_TIME = 20;
const MOST_QUEUES = 1_000;

export function queueFigures(openAll: () => Promise<readonly AnyQueue[]>): MetricsSource {
  let [text, goodUntilMs] = ['', -Infinity];
  let reading: Promise<void> | undefined;
  const read = async (): Promise<void> => {
    const startedMs = performance.now();
    text = await prometheusText((await openAll()).slice(0, MOST_QUEUES));
    const endedMs = performance.now();
    goodUntilMs = endedMs + SHARE_OF_TIME * (endedMs - startedMs);
  };
  return async () => {
    if (performance.now() < goodUntilMs) return text;
    reading ??= read().finally(() => (reading = undefined));
    // While Redis is away there are none: figures of yesterday would look like those of today.
    return withDeadline(reading, DEADLINE_MS, () => new Error('too late')).then(
      () => text,
      () => '',
    );
  };
}
