// Runs many schedules, as a program of its own: the test runner watches every promise, and schedules make millions.
//
//   node packages/cache/dist/test/model/main.js --redis redis://… --schedules 1000000 --seed 7
//
// Prints the first violation as JSON, or nothing.
import { parseArgs } from 'node:util';
import { sabotages } from './sabotage.js';
import { Schedule, type Violation } from './schedule.js';
import { Server } from './server.js';

/** They take turns at waiting for Redis. */
const atOnce = 64;

// Errors are ordinary here, and nobody reads where they came from.
Error.stackTraceLimit = 0;

const { values } = parseArgs({
  options: {
    redis: { type: 'string' },
    schedules: { type: 'string', default: '1' },
    seed: { type: 'string', default: '1' },
    sabotage: { type: 'string', default: '' },
  },
});
const server = await Server.connect(values.redis!);
const violation = await runSchedules(Number(values.seed), Number(values.schedules));
server.close();
if (violation) process.stdout.write(JSON.stringify(violation));

async function runSchedules(firstSeed: number, count: number): Promise<Violation | undefined> {
  const sabotage = sabotages[values.sabotage];
  let next = 0;
  let found: Violation | undefined;
  const lane = async (): Promise<void> => {
    while (next < count && found === undefined) {
      const seed = firstSeed + next++;
      found ??= await new Schedule(seed, `m${values.sabotage}${seed}`, server, sabotage).run();
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  return found;
}
