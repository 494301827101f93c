// `npm run chaos -- uploads …`: reads the command line, runs, and says what came of it. The last line is the sum.
import { parseArgs } from 'node:util';
import { conduct } from './conductor.js';
import type { RunOptions, RunReport } from './conductor.js';
import { faultNames, faults } from './faults.js';
import type { FaultName } from './faults.js';
import { guards } from './sabotage.js';
import type { GuardName } from './sabotage.js';

const shownViolations = 20;

const usage = `usage: npm run chaos -- uploads [options]
  --seconds N        how long things break (default 30)
  --seed S           draws the same plan again (default: a new one)
  --store K          s3 (versitygw) or disk (default s3)
  --only a,b,...     only these faults; "point" means the fail points
  --tour             no faults by plan: a kill -9 at every fail point of uploads
  --sabotage G       without one guard: ${Object.keys(guards).join(', ')}; the checker must object
  --keep             keeps the evidence also when nothing was wrong
faults:
${faultNames.map((name) => `  ${name.padEnd(18)} ${faults[name].what}`).join('\n')}`;

/** Returns the exit code: 0 only if the checker had nothing to object. */
export async function runUploads(args: string[]): Promise<number> {
  if (args.includes('--help')) {
    process.stdout.write(`${usage}\n`);
    return 0;
  }
  const options = readCommandLine(args);
  if (typeof options === 'string') {
    process.stderr.write(`${options}\n${usage}\n`);
    return 2;
  }
  const report = await conduct({ ...options, say: (line) => process.stderr.write(`  ${line}\n`) });
  process.stdout.write(describe(report, options));
  return report.violations.length === 0 ? 0 : 1;
}

function describe(report: RunReport, options: RunOptions): string {
  const { violations, figures, strikes, folder } = report;
  const { seed, seconds, store, sabotage } = options;
  const lines = [
    `figures: ${JSON.stringify(figures)}`,
    `faults: ${[...strikes].map(([name, count]) => `${name} ${count}`).join(', ')}`,
  ];
  for (const violation of violations.slice(0, shownViolations)) lines.push(`violation: ${violation}`);
  if (violations.length > shownViolations) lines.push(`… and ${violations.length - shownViolations} more`);
  if (violations.length > 0) lines.push(`evidence: ${folder}`, `again: ${commandFor(options)}`);
  const verdict = violations.length === 0 ? 'ok' : `${violations.length} violations`;
  const what = `seed=${seed} seconds=${seconds} store=${store}${sabotage ? ` without=${sabotage}` : ''}`;
  const { files, completed, kills, points, ofPoints } = figures;
  lines.push(
    `chaos uploads: ${verdict} ${what} files=${files} completed=${completed} kills=${kills} points=${points}/${ofPoints}`,
  );
  return `${lines.join('\n')}\n`;
}

/** What runs the same plan again. */
export function commandFor({ seed, seconds, store, only, tour, sabotage }: RunOptions): string {
  const words = [`--seconds ${seconds}`, `--seed ${seed}`];
  if (store !== 's3') words.push(`--store ${store}`);
  if (only.length > 0) words.push(`--only ${only.join(',')}`);
  if (tour) words.push('--tour');
  if (sabotage) words.push(`--sabotage ${sabotage}`);
  return `npm run chaos -- uploads ${words.join(' ')}`;
}

function readCommandLine(args: string[]): RunOptions | string {
  try {
    const { values } = parseArgs({
      args,
      options: {
        seconds: { type: 'string', default: '30' },
        seed: { type: 'string', default: String(Date.now() % 1_000_000) },
        store: { type: 'string', default: 's3' },
        only: { type: 'string', default: '' },
        tour: { type: 'boolean', default: false },
        sabotage: { type: 'string' },
        keep: { type: 'boolean', default: false },
      },
    });
    const { seed, store, tour, sabotage, keep } = values;
    const seconds = Number(values.seconds);
    const only = values.only.split(',').filter(Boolean);
    const stranger = only.find((name) => name !== 'point' && !Object.hasOwn(faults, name));
    if (!(seconds > 0)) return `--seconds ${values.seconds} is no length`;
    if (stranger !== undefined) return `there is no fault ${stranger}`;
    if (store !== 's3' && store !== 'disk') return `there is no store ${store}`;
    if (sabotage !== undefined && !Object.hasOwn(guards, sabotage)) return `there is no guard ${sabotage}`;
    return {
      seed,
      seconds,
      store,
      only: only as (FaultName | 'point')[],
      tour,
      sabotage: sabotage as GuardName | undefined,
      keep,
    };
  } catch (error) {
    return (error as Error).message;
  }
}
