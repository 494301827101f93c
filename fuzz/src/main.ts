// `npm run fuzz -- --requests N --seed S`: reads the command line, runs, and says what was found. The last line is the sum; the exit code is
// 0 only if nothing was.
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { campaign, type Report } from './campaign.js';

const usage = `usage: npm run fuzz -- [options]
  --requests N   how many requests (default 100000)
  --seed S       draws the same requests again, as far as the answers are the same (default: a new one)
  --minutes M    ends after so many minutes, however many requests are left
  --only TEXT    only routes whose address contains the text
`;

const mebibyte = 1_048_576;

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '100000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    minutes: { type: 'string' },
    only: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
const requests = Number(values.requests);
const minutes = values.minutes === undefined ? undefined : Number(values.minutes);
if (values.help || !(requests >= 1) || (minutes !== undefined && !(minutes > 0))) {
  process.stderr.write(usage);
  process.exit(values.help ? 0 : 2);
}
const report = await campaign({
  requests,
  seed: values.seed,
  ...(minutes !== undefined && { milliseconds: minutes * 60_000 }),
  ...(values.only !== undefined && { only: values.only }),
  folder: join(process.cwd(), '.sluice', 'fuzz'),
  say: (line) => process.stderr.write(`  ${line}\n`),
});
process.stdout.write(describe(report, values.seed));
process.exit(report.findings.length === 0 ? 0 : 1);

function describe(report: Report, seed: string): string {
  const { findings, statuses, neverSucceeded, memoryBytes, seconds } = report;
  const lines = findings.flatMap(({ what, where, times, first, curl }) => [
    `found: ${where}: ${what} (${times}×)`,
    `  ${first}`,
    ...(curl === '' ? [] : [`  ${curl}`]),
  ]);
  const counts = [...statuses]
    .map(([status, count]) => `${status} ${count}`)
    .sort((one, other) => one.localeCompare(other));
  lines.push(`answers: ${counts.join(', ')}`);
  if (neverSucceeded.length > 0) lines.push(`never with success: ${neverSucceeded.join(', ')}`);
  const [before, after] = [memoryBytes.before, memoryBytes.after].map((bytes) =>
    Math.round(bytes / mebibyte),
  );
  lines.push(`memory of the server: ${before} MiB before, ${after} MiB after`);
  const verdict = findings.length === 0 ? 'ok' : `${findings.length} findings`;
  lines.push(
    `fuzz: ${verdict} seed=${seed} requests=${report.requests} routes=${report.operations} seconds=${seconds.toFixed(0)}`,
  );
  return `${lines.join('\n')}\n`;
}
