/** The tree of commands: help that begins with examples, misuse with its code, completion; nothing here needs a server. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { makeOwnedFolder } from '@sluice/testbed';
import type { SluiceCommand } from '../src/command.js';
import { judgeRedis, judgePostgres, judgeSkew, knownVariables } from '../src/doctorCommand.js';
import type { RedisHealth } from '../src/replies.js';
import { homeIn, jsonLines, runCli } from './commandLine.js';
import { everyCommand, leaves, pathTo } from './commandTree.js';

/** Nobody listens there: ports below 1024 are not given to tests. */
const NOBODY = 'http://127.0.0.1:9';

test('the help of every command begins with examples that run as they stand', () => {
  const commands = everyCommand();
  assert.ok(commands.length > 60);
  for (const command of commands) {
    const help = command.helpInformation();
    const name = command.name();
    assert.ok(command.examples.length > 0, `${name} has no example`);
    assert.ok(command.description() !== '', `${name} has no description`);
    assert.ok(help.indexOf('Examples:') < help.indexOf('Usage:'), name);
    assert.ok(help.indexOf('Usage:') < help.indexOf('Options:'), name);
    for (const line of help
      .split('Usage:')[0]!
      .split('\n')
      .filter((text) => text.startsWith('  ')))
      assert.match(line, /sluice \w+|^ {6}/, `${name}: ${line}`);
  }
});

test('help follows the words of a command, and knows what was meant by others', async () => {
  const deep = await runCli(['help', 'dead', 'replay']);
  assert.equal(deep.stdout, (await runCli(['dead', 'replay', '--help'])).stdout);
  assert.match(deep.stdout, /^Run dead letters again\.\n\nExamples:\n/);
  for (const line of deep.stdout.split('\n')) assert.ok(line.length <= 80, line);
  const wrong = await runCli(['help', 'dead', 'replya']);
  assert.deepEqual([wrong.code, wrong.stdout], [2, '']);
  assert.match(wrong.stderr, /Did you mean replay\?/);
});

test('what asks before it destroys can also be asked what it would do', () => {
  const has = (command: SluiceCommand, long: string): boolean =>
    command.options.some((option) => option.long === long);
  const careful = everyCommand().filter((command) => has(command, '--yes'));
  assert.ok(careful.length > 10);
  for (const command of careful) assert.ok(has(command, '--dry-run'), pathTo(command).join(' '));
});

test('examples name only commands and options that exist', () => {
  const [program, ...commands] = everyCommand();
  for (const command of commands.filter((one) => one.commands.length === 0)) {
    for (const { line } of command.examples) {
      const words = line
        .replace(/'[^']*'/g, 'x')
        .split(/ [|<>]/)[0]!
        .split(/\s+/);
      const named = words.includes(command.name()) ? words : [];
      const known = new Set(
        [...command.options, ...program!.options].flatMap(({ long, short }) => [long, short]),
      );
      for (const word of named.filter((text) => /^--?[a-z]/.test(text)))
        assert.ok(known.has(word), `${line}: ${word}`);
    }
  }
});

test('what the documentation and the dashboard show exists, with its options', () => {
  const root = fileURLToPath(new URL('../../../../', import.meta.url));
  const guides = readdirSync(join(root, 'docs/guides')).map((name) => `docs/guides/${name}`);
  const [program, ...commands] = everyCommand();
  const known = new Map(commands.map((command) => [pathTo(command).join(' '), command]));
  let seen = 0;
  const pages = ['settings/keys.tsx', 'signIn.tsx'].map((name) => `apps/dashboard/src/${name}`);
  for (const file of ['README.md', 'apps/cli/README.md', ...guides, ...pages]) {
    const text = readFileSync(join(root, file), 'utf8');
    // A line of a terminal, or a piece of a sentence, up to what is no word of the command; on a page, a text in quotes.
    const shown = pages.includes(file)
      ? /"(?:npx )?sluice ([a-z][^"]*)"/g
      : /(?:^\$ |^npx |`)sluice ([a-z][^`|#<>\n]*)/gm;
    const before = seen;
    for (const [, line] of text.matchAll(shown)) {
      const words = line!
        .replace(/'[^']*'/g, 'x')
        .trim()
        .split(/\s+/);
      const command = known.get(words.slice(0, 2).join(' ')) ?? known.get(words[0]!);
      assert.ok(command, `${file}: sluice ${line}`);
      const options = [...command.options, ...program!.options].flatMap(({ long, short }) => [long, short]);
      for (const word of words.filter((one) => /^--?[a-z]/.test(one)))
        assert.ok(options.includes(word), `${file}: sluice ${line}: ${word}`);
      assert.ok(command.commands.length === 0 || words.length === 1, `${file}: sluice ${line}`);
      seen += 1;
    }
    if (pages.includes(file)) assert.ok(seen > before, file);
  }
  assert.ok(seen > 80);
});

test('a mistake on the command line is a sentence, a hint and the code 2', async () => {
  for (const args of [
    ['bogus'],
    ['queues', 'bogus'],
    ['jobs', 'ls'],
    ['upload'],
    ['jobs', 'ls', 'mail', '--nonsense'],
    ['completion', 'tcsh'],
  ]) {
    const { code, stdout, stderr } = await runCli(args);
    assert.equal(code, 2, args.join(' '));
    assert.equal(stdout, '');
    assert.match(stderr, /^sluice: /);
    assert.doesNotMatch(stderr, /\n\s+at /, 'no stack');
  }
  const { stderr } = await runCli(['queeus']);
  assert.match(stderr, /Did you mean queues\?/);
  const span = await runCli(['top', '--every', 'often']);
  assert.equal(span.code, 2);
  assert.match(span.stderr, /"often" is not a span like 90s/);
});

test('a server that is away is the code 5, in words or as JSON', async () => {
  const words = await runCli(['queues', 'ls', '--url', NOBODY]);
  assert.equal(words.code, 5);
  assert.equal(words.stdout, '');
  assert.match(words.stderr, /no answer from http:\/\/127\.0\.0\.1:9 .*sluice doctor/);
  const json = await runCli(['queues', 'ls', '--json', '--url', NOBODY]);
  assert.equal(json.code, 5);
  const { error } = JSON.parse(json.stderr) as { error: { code: string; exitCode: number } };
  assert.deepEqual([error.code, error.exitCode], ['SERVER_AWAY', 5]);
});

test('what destroys is refused without a terminal unless --yes is said', async () => {
  const { code, stderr } = await runCli(['keys', 'rm', 'abc', '--url', NOBODY]);
  assert.equal(code, 2);
  assert.match(stderr, /no terminal to ask on; say --yes/);
  const sure = await runCli(['keys', 'rm', 'abc', '--yes', '--url', NOBODY]);
  assert.equal(sure.code, 5, 'with --yes it goes on and finds nobody');
});

test('an address with a password in it is refused', async () => {
  const { code, stderr } = await runCli(['status', '--url', 'http://me:secret@127.0.0.1:9']);
  assert.equal(code, 2);
  assert.doesNotMatch(stderr, /secret/);
});

test('colours are for terminals, unless somebody says otherwise', async () => {
  const doctor = (env: Record<string, string>, ...more: string[]) =>
    runCli(['doctor', '--url', NOBODY, ...more], { env });
  const escape = '\x1b[';
  assert.ok(!(await doctor({})).stdout.includes(escape));
  assert.ok((await doctor({ FORCE_COLOR: '1' })).stdout.includes(escape));
  assert.ok(!(await doctor({ NO_COLOR: '1', FORCE_COLOR: '1' })).stdout.includes(escape));
  assert.ok((await doctor({ NO_COLOR: '1' }, '--color', 'always')).stdout.includes(escape));
  assert.ok(!(await doctor({ FORCE_COLOR: '1' }, '--color', 'never')).stdout.includes(escape));
});

test('completion proposes commands, options, choices and files', async () => {
  const complete = async (...words: string[]): Promise<string[]> =>
    (await runCli(['__complete', ...words])).stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => line.split('\t')[0]!);
  assert.ok((await complete('')).includes('dead'));
  assert.ok(!(await complete('')).includes('__complete'));
  assert.deepEqual(await complete('dead', 'r'), ['replay', 'rm']);
  assert.deepEqual(await complete('dead', 'replay', '--per'), ['--per-second']);
  assert.deepEqual(await complete('jobs', 'ls', 'mail', '--state', 'de'), ['delayed', 'dead']);
  assert.deepEqual(await complete('upload', ''), [':files']);
  assert.deepEqual(await complete('completion', 'z'), ['zsh']);
  assert.deepEqual(await complete('jobs', 'ls', '--json', ''), [], 'queues of a server that is away');
});

for (const shell of ['bash', 'zsh', 'fish']) {
  const isThere = spawnSync(shell, ['--version']).status === 0;
  test(`the completion for ${shell} is a script that asks us what to propose`, async () => {
    const { stdout, code } = await runCli(['completion', shell]);
    assert.equal(code, 0);
    assert.match(stdout, /sluice __complete /);
    const file = join(makeOwnedFolder('completion'), `sluice.${shell}`);
    await writeFile(file, stdout);
    // Where the shell is not installed, its script is only read by us.
    if (isThere) await promisify(execFile)(shell, ['-n', file]);
  });
}

test('logout forgets what login kept; whoever can read a kept key is a finding of doctor', async () => {
  const folder = makeOwnedFolder('cli');
  const env = homeIn(folder);
  const file = join(folder, 'config', 'sluice', 'login.json');
  await mkdir(join(folder, 'config', 'sluice'), { recursive: true });
  await writeFile(file, JSON.stringify({ url: NOBODY, key: 'slk_0123456789' }));
  await chmod(file, 0o644);
  const found = await runCli(['doctor', '--json'], { env });
  assert.equal(found.code, 1);
  const finding = jsonLines<{ what: string; level: string; advice: string }>(found).find(
    ({ what }) => what === 'login file',
  );
  assert.equal(finding?.level, 'fail');
  assert.match(finding.advice, /chmod 600/);
  assert.ok(!found.stdout.includes('slk_'), 'keys are never shown');
  assert.equal((await runCli(['logout'], { env })).code, 0);
  await assert.rejects(stat(file));
});

test('doctor knows every variable that the server and this command read', async () => {
  const sources = ['../../../server/src/config.ts', '../../src/config.ts'].map((path) =>
    readFileSync(fileURLToPath(new URL(path, import.meta.url)), 'utf8'),
  );
  const read = new Set(
    sources.flatMap((text) =>
      [...text.matchAll(/['`](SLUICE_[A-Z0-9_]*[A-Z0-9])\b/g)].map(([, name]) => name!),
    ),
  );
  assert.ok(read.size > 20);
  assert.deepEqual(
    [...read].filter((name) => !knownVariables.has(name)),
    [],
  );
  const folder = makeOwnedFolder('cli');
  const misspelt = await runCli(['doctor', '--json', '--url', NOBODY], {
    env: { ...homeIn(folder), SLUICE_REDIS_ULR: 'x' },
  });
  assert.match(misspelt.stdout, /nobody reads [A-Z_, ]*SLUICE_REDIS_ULR/);
});

const healthy: RedisHealth = {
  ...{
    version: '7.2.4',
    nowMs: 0,
    masters: 1,
    usedBytes: 10,
    rssBytes: 10,
    maxBytes: 100,
    policy: 'noeviction',
  },
  ...{
    fragmentation: 1,
    opsPerSecond: 0,
    clients: 1,
    blockedClients: 0,
    keys: 1,
    evicted: 0,
    expired: 0,
    hits: 0,
    misses: 0,
  },
  uptimeSeconds: 1,
  aof: { enabled: true, bytes: 1, lastWriteOk: true, rewriting: false, delayedFsyncs: 0 },
};

test('doctor judges a Redis: eviction, persistence, memory, version', () => {
  const worst = (change: Partial<RedisHealth>): string[] =>
    judgeRedis({ ...healthy, ...change })
      .filter(({ level }) => level !== 'ok')
      .map(({ what, level }) => `${what} ${level}`);
  assert.deepEqual(worst({}), []);
  assert.deepEqual(worst({ policy: 'allkeys-lru' }), ['eviction fail']);
  assert.deepEqual(worst({ evicted: 3 }), ['evicted keys fail']);
  assert.deepEqual(worst({ usedBytes: 85 }), ['memory warn']);
  assert.deepEqual(worst({ usedBytes: 99 }), ['memory fail']);
  assert.deepEqual(worst({ maxBytes: 0 }), ['memory warn']);
  assert.deepEqual(worst({ version: '6.2.1' }), ['Redis version fail']);
  // Whatever fails says what to do.
  const sick = judgeRedis({ ...healthy, version: '6.2.1', policy: 'allkeys-lru', evicted: 3, usedBytes: 99 });
  for (const { what, level, advice } of sick)
    if (level !== 'ok') assert.ok(advice !== undefined && advice !== '', what);
  assert.deepEqual(worst({ aof: { ...healthy.aof, enabled: false } }), ['persistence warn']);
  assert.deepEqual(worst({ aof: { ...healthy.aof, lastWriteOk: false } }), ['persistence fail']);
});

test('doctor judges clocks within what it can measure', () => {
  assert.equal(judgeSkew('clock', 900, 1_000).level, 'ok');
  assert.equal(judgeSkew('clock', -5_000).level, 'warn');
  assert.equal(judgeSkew('clock', 60_000).level, 'fail');
  assert.match(judgeSkew('clock', 60_000).text, /1 min ahead/);
});

test('doctor refuses a PostgreSQL that is too old, and says what to do', () => {
  assert.equal(judgePostgres('18.1').level, 'ok');
  const { level, advice } = judgePostgres('12.22 (Debian 12.22-1)');
  assert.deepEqual([level, advice], ['fail', 'upgrade to PostgreSQL 13 or newer']);
});

test('the README names every command', async () => {
  const readme = await readFile(fileURLToPath(new URL('../../README.md', import.meta.url)), 'utf8');
  for (const words of leaves().map(pathTo))
    assert.ok(
      readme.includes(`sluice ${words.join(' ')}`),
      `the README does not show: sluice ${words.join(' ')}`,
    );
});

test('every command is run by a test', () => {
  const folder = fileURLToPath(new URL('../../test/', import.meta.url));
  const files = readdirSync(folder).filter((name) => name.endsWith('.test.ts'));
  const tests = files.map((name) => readFileSync(join(folder, name), 'utf8')).join('\n');
  for (const words of leaves().map(pathTo)) {
    // As arguments of a test, or typed on a terminal. A command without a group is no word of another one's.
    const quoted = words.map((word) => `'${word}'`).join(',\\s*');
    const typed = `sluice ${words.join(' ')}\\b`;
    assert.match(tests, new RegExp(`[[(]${quoted}|\\b\\w+,\\s*${quoted}|${typed}`), words.join(' '));
  }
});
