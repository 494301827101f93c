/**
 * `npm run shake`: finds tests that pass only because things happen in the usual order. Runs test files again and again, in any order, several
 * at once, in processes that hear late and stand still (`shaken.mjs`). A test that fails here has a race, or a deadline that a busy machine
 * does not keep; both would fail some day without a reason that anybody can see.
 *
 * `npm run shake -- --rounds 10 cache fill` runs only the files whose path contains all words. Tests that measure time are left out, and so
 * is chaos, which shakes by itself. What failed is printed when it failed.
 */
import { spawn } from 'node:child_process';
import { parseArgs } from 'node:util';
import { prepare, root, say, stopWith } from './prepare.mjs';
import { kindOf, testFiles } from './testFiles.mjs';

const AT_ONCE = 4;
const ONE_FILE_TIMEOUT_MS = 10 * 60_000;

const { values, positionals: words } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '3' } },
});
const rounds = Number(values.rounds);
if (!Number.isInteger(rounds) || rounds < 1) stopWith(`--rounds is a whole number, not ${values.rounds}`);
const files = testFiles(words).filter((file) => kindOf(file) === 'usual');
if (files.length === 0) stopWith(`no usual test file has ${words.join(' and ')} in its path`);
await prepare({ redis: true, openssl: true, postgres: true, versitygw: true, tmux: true, chromium: true });
const { keepTemporaryFilesInMemory } = await import('../packages/testbed/dist/src/memoryDisk.js');
keepTemporaryFilesInMemory();
const waiting = Array.from({ length: rounds }, () => shuffled(files)).flat();
const all = waiting.length;
const failures = new Map();
await Promise.all(Array.from({ length: AT_ONCE }, work));
for (const [test, times] of failures) say(`✖ ${test}: ${times} of ${rounds}`);
say(`${all} runs of ${files.length} files, ${failures.size} tests failed`);
process.exitCode = failures.size === 0 ? 0 : 1;

async function work() {
  for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
    const { code, text } = await runOne(file);
    if (code === 0) continue;
    process.stdout.write(
      `\n${file}, ${all - waiting.length} of ${all}\n${text.split('failing tests:').at(-1)}\n`,
    );
    const names = new Set([...text.matchAll(/✖ (.+) \(\d/g)].map(([, name]) => name));
    for (const name of names.size > 0 ? names : ['?']) {
      const test = `${file}: ${name}`;
      failures.set(test, (failures.get(test) ?? 0) + 1);
    }
  }
}

async function runOne(file) {
  const shaken = new URL('shaken.mjs', import.meta.url).href;
  const env = { ...process.env, NODE_OPTIONS: `--import=${shaken}` };
  const args = ['--test', '--test-reporter=spec', `--test-timeout=${ONE_FILE_TIMEOUT_MS}`, file];
  const child = spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece) => (text += piece));
  const code = await new Promise((resolve) => child.once('close', resolve));
  return { code, text };
}

function shuffled(list) {
  return list
    .map((item) => ({ item, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
