/**
 * `npm test`: types, lint, format, every test of every package, the promises, and a look for what was left running.
 * The last line is the sum: `N passed, N failed, N skipped`. The exit code is 0 only if nothing failed.
 *
 * `npm test -- claim` runs only the test files whose path contains a word; the promises are then not checked.
 * With CI=true a part or a test that was skipped counts as failed.
 *
 * Files named `*.calm.test.ts` run after the others, two at once; files named `*.alone.test.ts` last, one by one.
 */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { checkFormat, lint } from './checks.mjs';
import { endLeftovers } from './leftovers.mjs';
import { compile, prepare, root, say } from './prepare.mjs';
import { brokenPromises } from './promises.mjs';
import { kindOf, testFiles } from './testFiles.mjs';

/** Test files at once, by kind. Each brings its own servers, and CI has two cores; but tests wait for things more than they compute. */
const AT_ONCE = { usual: 3, calm: 2, alone: 1 };
const ONE_TEST_TIMEOUT_MS = 10 * 60_000;
/** A run takes about twenty minutes on two cores; this ends one that hangs. */
const WHOLE_RUN_TIMEOUT_MS = 45 * 60_000;

const words = process.argv.slice(2);
const stateFolder = join(root, '.sluice');
const mark = `SLUICE_TEST_RUN=${randomUUID()}`;
const sum = { passed: 0, failed: 0, skipped: 0 };
const failures = [];
const records = [];
let runner;
let tempFolder;

for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => interrupt(signal));
const lateness = setTimeout(() => interrupt('the time limit'), WHOLE_RUN_TIMEOUT_MS);

const servers = { redis: true, openssl: true, postgres: true, versitygw: true };
await prepare({ ...servers, tmux: true, chromium: true, compiler: true, build: false });
// The compiler and the formatter keep one core each busy.
const [typesHold] = await Promise.all([part('types', compile), part('format', checkFormat)]);
await part('lint', lint);
if (typesHold) await runTests();
else skip('tests', 'the types do not hold');
if (!typesHold || words.length > 0) skip('promises', 'not all tests ran');
else await part('promises', checkPromises);
if (existsSync('/proc/self/environ')) await part('nothing left running', checkLeftovers);
else skip('nothing left running', 'this system shows no process environments');
clearTimeout(lateness);
finish();

/** One check beside the tests; `check` returns an exit code. */
async function part(name, check) {
  const began = performance.now();
  const code = await check();
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  say(`${code === 0 ? '✔' : '✖'} ${name} (${seconds} s)`);
  count(code === 0 ? 'passed' : 'failed', name);
  return code === 0;
}

function skip(name, why) {
  say(`﹣ ${name}: skipped, ${why}`);
  count(process.env.CI === 'true' ? 'failed' : 'skipped', `${name} (skipped: ${why})`);
}

function count(outcome, name) {
  sum[outcome] += 1;
  if (outcome === 'failed') failures.push(name);
}

async function runTests() {
  const files = testFiles(words);
  const groups = Object.entries(AT_ONCE).map(([kind, concurrency]) => ({
    files: files.filter((file) => kindOf(file) === kind),
    concurrency,
  }));
  // Tests kill processes, not machines: what their servers write may lie in memory, where no slow disk makes them late.
  const { keepTemporaryFilesInMemory } = await import('../packages/testbed/dist/src/memoryDisk.js');
  keepTemporaryFilesInMemory();
  tempFolder = mkdtempSync(join(tmpdir(), 'sluice-test-'));
  for (const [index, group] of groups.entries()) {
    if (group.files.length === 0 || failures.includes('interrupted')) continue;
    const before = sum.failed;
    const code = await runFiles(group, join(stateFolder, `test-record-${index}.jsonl`));
    // A run that fails without a failed test broke in a place that no test owns.
    if (code !== 0 && sum.failed === before) count('failed', 'the test runner');
  }
  rmSync(tempFolder, { recursive: true, force: true, maxRetries: 3 });
}

async function runFiles({ files, concurrency }, recordFile) {
  mkdirSync(stateFolder, { recursive: true });
  const [markName, markValue] = mark.split('=');
  const env = { ...process.env, [markName]: markValue, TMPDIR: tempFolder };
  // Were we ourselves started by a test, the tests below would report to it instead of to us.
  delete env.NODE_TEST_CONTEXT;
  const args = [
    '--test',
    `--test-concurrency=${concurrency}`,
    `--test-timeout=${ONE_TEST_TIMEOUT_MS}`,
    '--test-reporter=spec',
    '--test-reporter-destination=stdout',
    `--test-reporter=${new URL('testRecord.mjs', import.meta.url).href}`,
    `--test-reporter-destination=${recordFile}`,
    ...files,
  ];
  runner = spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', 1, 2] });
  const code = await new Promise((resolve) => {
    runner.once('exit', (exitCode) => resolve(exitCode ?? 1));
  });
  runner = undefined;
  const lines = existsSync(recordFile) ? readFileSync(recordFile, 'utf8').split('\n').filter(Boolean) : [];
  for (const record of lines.map((line) => JSON.parse(line))) {
    records.push(record);
    const name = `${relative(root, record.file ?? '')}: ${record.path}`;
    // A test that was skipped has shown nothing.
    if (record.outcome === 'skipped' && process.env.CI === 'true') count('failed', `${name} (skipped)`);
    else count(record.outcome, name);
  }
  return code;
}

function checkPromises() {
  const file = join(root, 'docs', 'promises.md');
  const broken = existsSync(file)
    ? brokenPromises(readFileSync(file, 'utf8'), records)
    : ['there is no file'];
  for (const sentence of broken) say(`  docs/promises.md: ${sentence}`);
  return broken.length === 0 ? 0 : 1;
}

async function checkLeftovers() {
  const stayed = await endLeftovers(mark, tempFolder);
  for (const { pid, command } of stayed) say(`  process ${pid} was left running: ${command}`);
  return stayed.length === 0 ? 0 : 1;
}

function interrupt(why) {
  if (failures.includes('interrupted')) return;
  say(`\nstopping because of ${why}`);
  count('failed', 'interrupted');
  runner?.kill('SIGTERM');
}

function finish() {
  if (failures.length > 0)
    process.stdout.write(`\nfailed:\n${failures.map((name) => `  ${name}\n`).join('')}`);
  process.stdout.write(`\n${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped\n`);
  process.exitCode = sum.failed === 0 ? 0 : 1;
}
