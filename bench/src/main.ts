/*
 * `npm run bench -- <suite> [options]`: reads the command line and runs one suite.
 *
 * A suite is a name and a function. The figures go to standard output, as a table or as one JSON object;
 * everything else (progress, remarks of the systems under test) goes to standard error, so that
 * `npm run bench -- queue --json | jq .process` works.
 */
import { parseArgs } from 'node:util';
import { isSluiceError } from '@sluice/base';
import { errors } from './errors.js';
import { benchGroups } from './cache/groups.js';
import { benchCache } from './cache/suite.js';
import { benchDashboard } from './dashboard/suite.js';
import { benchInspect } from './inspect/suite.js';
import { benchQueue } from './queue/suite.js';
import { benchUploads } from './uploads/suite.js';
import { tuneUploads } from './uploads/tuning.js';
import type { BenchOptions } from './options.js';

const SUITES: Record<string, (options: BenchOptions) => Promise<void>> = {
  queue: benchQueue,
  cache: benchCache,
  cacheGroups: benchGroups,
  inspect: benchInspect,
  dashboard: benchDashboard,
  uploads: benchUploads,
  uploadsTuning: tuneUploads,
};

const USAGE = `usage: npm run bench -- <${Object.keys(SUITES).join(' | ')}> [options]
  --json          print one JSON object instead of the table
  --rounds N      rounds per measure; the table shows their median and spread (default 5)
  --quick         small sizes and two rounds: does it run, and roughly how fast
  --only a,b,...  only these measures, only these systems, or both
  --save          also write results/<date>-<suite>.json with a description of the machine`;

try {
  const { suite, options } = readCommandLine(process.argv.slice(2));
  await suite(options);
} catch (error) {
  const text = isSluiceError(error) ? `${error.code}: ${error.message}` : String((error as Error).stack);
  process.stderr.write(`${text}\n`);
  // A system that hung may still hold connections and timers, which would keep this process alive.
  process.exit(1);
}

function readCommandLine(args: string[]): {
  suite: (options: BenchOptions) => Promise<void>;
  options: BenchOptions;
} {
  const { values, positionals } = parse(args);
  const suite = SUITES[positionals[0] ?? ''];
  const rounds = values.rounds === undefined ? undefined : Number(values.rounds);
  const roundsAreSane = rounds === undefined || (Number.isInteger(rounds) && rounds >= 1);
  if (suite === undefined || positionals.length !== 1 || !roundsAreSane) {
    throw errors.BAD_COMMAND_LINE({ why: USAGE });
  }
  const only = (values.only ?? '').split(',').filter((name) => name !== '');
  const { json, quick, save } = values;
  return { suite, options: { json, quick, save, only, rounds } };
}

function parse(args: string[]) {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: {
        json: { type: 'boolean', default: false },
        quick: { type: 'boolean', default: false },
        save: { type: 'boolean', default: false },
        rounds: { type: 'string' },
        only: { type: 'string' },
      },
    });
  } catch (error) {
    throw errors.BAD_COMMAND_LINE({ why: `${(error as Error).message}\n${USAGE}` });
  }
}
