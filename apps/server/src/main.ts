/**
 * The program behind `npm start`: reads the settings, starts the parts (`parts.ts`), and stops them in the opposite order when it is
 * told to.
 *
 * The first SIGINT, SIGTERM or SIGHUP begins an orderly stop that ends by a deadline. A second one, given a second
 * later or more, ends the process at once. (A Ctrl-C under npm arrives twice within milliseconds: from the
 * terminal and from npm. That is one wish, not two.)
 *
 * Exit codes: 0 after an orderly stop, 2 when a setting is wrong, 1 for everything else.
 */
import { inspect } from 'node:util';
import { isSluiceError, redactor } from '@sluice/base';
import { readConfig, type Config } from './config.js';
import { EXIT_MISUSE, isMisuse } from './errors.js';
import type { Stop } from './parts.js';

const SAME_WISH_MS = 1_000;
const FAILED_START_DEADLINE_MS = 10_000;

await main();

async function main(): Promise<void> {
  const stops: Stop[] = [];
  let isStopping = (): boolean => false;
  try {
    const config = readConfig();
    isStopping = obeySignals(config, stops);
    // A wrong setting is told before anything large is loaded.
    const { startParts } = await import('./parts.js');
    await startParts(config, stops);
  } catch (error) {
    // A start that a stop interrupted has not failed; the stop ends the process.
    if (isStopping()) return;
    process.exitCode = isSluiceError(error) && isMisuse(error.code) ? EXIT_MISUSE : 1;
    // What is expected to go wrong has a message for people; for the rest the stack helps.
    const report = isSluiceError(error) ? `sluice: ${error.message}` : inspect(error);
    console.error(redactor()('', report));
    await stopParts(stops, FAILED_START_DEADLINE_MS);
    process.exit();
  }
}

/** Returns whether a stop has begun. */
function obeySignals(config: Config, stops: Stop[]): () => boolean {
  let firstAt: number | undefined;
  const obey = async (): Promise<void> => {
    if (firstAt !== undefined) {
      if (performance.now() - firstAt > SAME_WISH_MS) process.exit(1);
      return;
    }
    firstAt = performance.now();
    console.log('Stopping; press Ctrl-C again to stop at once');
    await stopParts(stops, config.stopDeadlineMs);
    console.log('Stopped');
    process.exit();
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void obey());
  return () => firstAt !== undefined;
}

/** What one part took from the time is missing for the next ones: the whole stop ends by the deadline. */
async function stopParts(stops: Stop[], deadlineMs: number): Promise<void> {
  const end = performance.now() + deadlineMs;
  for (let stop = stops.pop(); stop; stop = stops.pop()) {
    try {
      await stop(Math.max(end - performance.now(), 100));
    } catch (error) {
      process.exitCode = 1;
      console.error(error);
    }
  }
}
