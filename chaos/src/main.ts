// `npm run chaos -- --seconds N --seed S`: reads the command line, runs, and says what came of it. The last line is the sum; the exit
// code is 0 only if the checker had nothing to object. `npm run chaos -- uploads …` does the same to uploads (see uploads/command.ts).
import { parseArgs } from 'node:util';
import { conduct } from './conductor.js';
import type { RunOptions, RunReport } from './conductor.js';
import { faultNames, faults } from './faults.js';
import type { FaultName } from './faults.js';
import { guards } from './sabotage.js';
import type { GuardName } from './sabotage.js';
import { topologies } from './stage.js';
import type { Topology } from './stage.js';
import { runUploads } from './uploads/command.js';

const shownViolations = 20;

const usage = `usage: npm run chaos -- [options]      (npm run chaos -- uploads --help for those of uploads)
  --seconds N        how long things break (default 30)
  --seed S           draws the same plan again (default: a new one)
  --topology T       ${topologies.join(', ')} (default single)
  --only a,b,...     only these faults; "point" means the fail points
  --tour             no faults by plan: a kill -9 at every fail point, one after the other
  --swift            plain jobs that take no time, in bursts: stored, claimed and ended together
  --sabotage G       without one guard: ${Object.keys(guards).join(', ')}; the checker must object
  --control          with --sabotage: the same trouble, the guard in its place
  --keep             keeps the evidence also when nothing was wrong
faults:
${faultNames.map((name) => `  ${name.padEnd(18)} ${faults[name].what}`).join('\n')}`;

const args = process.argv.slice(2);
if (args[0] === 'uploads') process.exit(await runUploads(args.slice(1)));
if (args.includes('--help')) {
  process.stdout.write(`${usage}\n`);
  process.exit(0);
}
const options = readCommandLine(args);
if (typeof options === 'string') {
  process.stderr.write(`${options}\n${usage}\n`);
  process.exit(2);
}
const report = await conduct({ ...options, say: (line) => process.stderr.write(`  ${line}\n`) });
process.stdout.write(describe(report, options));
process.exit(report.violations.length === 0 ? 0 : 1);

function describe(
  { violations, figures, strikes, folder }: RunReport,
  { seed, seconds, topology, sabotage, control }: RunOptions,
): string {
  const list = (entries: Iterable<[string, number]>) =>
    [...entries].map(([name, count]) => `${name} ${count}`).join(', ');
  const lines = [`figures: ${list(Object.entries(figures))}`, `faults: ${list(strikes)}`];
  for (const violation of violations.slice(0, shownViolations)) lines.push(`violation: ${violation}`);
  if (violations.length > shownViolations) lines.push(`… and ${violations.length - shownViolations} more`);
  if (violations.length > 0) lines.push(`evidence: ${folder}`);
  const { jobs, kills, points, ofPoints, rescueMaxMs } = figures;
  const verdict = violations.length === 0 ? 'ok' : `${violations.length} violations`;
  const what = `seed=${seed} seconds=${seconds} topology=${topology}${sabotage ? ` ${control ? 'with' : 'without'}=${sabotage}` : ''}`;
  lines.push(
    `chaos: ${verdict} ${what} jobs=${jobs} kills=${kills} points=${points}/${ofPoints} rescueMaxMs=${rescueMaxMs}`,
  );
  return `${lines.join('\n')}\n`;
}

function readCommandLine(args: string[]): RunOptions | string {
  try {
    const { values } = parseArgs({
      args,
      options: {
        seconds: { type: 'string', default: '30' },
        seed: { type: 'string', default: String(Date.now() % 1_000_000) },
        topology: { type: 'string', default: 'single' },
        only: { type: 'string', default: '' },
        tour: { type: 'boolean', default: false },
        swift: { type: 'boolean', default: false },
        sabotage: { type: 'string' },
        control: { type: 'boolean', default: false },
        keep: { type: 'boolean', default: false },
      },
    });
    const { seed, topology, tour, swift, sabotage, control, keep } = values;
    const seconds = Number(values.seconds);
    const only = values.only.split(',').filter(Boolean);
    const stranger = only.find((name) => name !== 'point' && !Object.hasOwn(faults, name));
    if (!(seconds > 0)) return `--seconds ${values.seconds} is no length`;
    if (stranger !== undefined) return `there is no fault ${stranger}`;
    if (!(topologies as readonly string[]).includes(topology)) return `there is no topology ${topology}`;
    if (sabotage !== undefined && !Object.hasOwn(guards, sabotage)) return `there is no guard ${sabotage}`;
    return {
      seed,
      seconds,
      topology: topology as Topology,
      only: only as (FaultName | 'point')[],
      tour,
      swift,
      sabotage: sabotage as GuardName | undefined,
      control,
      keep,
    };
  } catch (error) {
    return (error as Error).message;
  }
}
