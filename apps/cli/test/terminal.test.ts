/** The command line in front of a person: a real terminal (tmux), a real bash, a real server. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { makeOwnedFolder, waitUntil } from '@sluice/testbed';
import type { Ran } from './commandLine.js';
import { startServer, type RunningServer } from './runningServer.js';
import { noTerminal, Terminal } from './terminal.js';

const inTerminal = { skip: noTerminal };
let server: RunningServer;
let terminal: Terminal;

before(async () => {
  if (noTerminal !== false) return;
  const handlers = join(makeOwnedFolder('handlers'), 'handlers.mjs');
  await writeFile(handlers, `export const handlers = { default: () => { throw new Error('no'); } };`);
  server = await startServer({ SLUICE_HANDLERS: handlers });
  await writeFile(join(server.folder, 'film.bin'), randomBytes(20_000_000));
  await writeFile(join(server.folder, 'note.txt'), 'hello\n');
  terminal = await Terminal.open({ folder: server.folder, env: server.env });
});
after(async () => {
  terminal?.close();
  await server?.stop();
});

/** Runs a line and returns what it left on the screen, with its exit code. */
async function runs(line: string): Promise<{ screen: string; code: number }> {
  await terminal.clear();
  await terminal.enter(`${line}; echo "ended with $?"`);
  const screen = await terminal.until(`the end of ${line}`, (text) => /^ended with \d+/m.test(text));
  return { screen, code: Number(/^ended with (\d+)/m.exec(screen)![1]) };
}

test('an upload shows a bar that grows and goes away', inTerminal, async () => {
  const { screen, code } = await runs('sluice upload film.bin');
  assert.equal(code, 0);
  assert.match(screen, /^main\/film\.bin {2}19\.1 MiB {2}[0-9a-f-]{36}$/m);
  assert.doesNotMatch(screen, /░/, 'the bar is wiped');
  await terminal.until('a bar', () => /\[█*░*\] +\d+ % {2}.* of 19\.1 MiB/.test(terminal.recorded()));
});

test('without a terminal on stderr there is no bar', inTerminal, async () => {
  const before = terminal.recorded().length;
  const { code } = await runs('sluice upload film.bin --to main/quiet.bin 2>err.txt');
  assert.equal(code, 0);
  assert.doesNotMatch(terminal.recorded().slice(before), /░/);
  const { screen } = await runs('wc -c < err.txt');
  assert.match(screen, /^0$/m);
});

test('what destroys asks, and takes no for an answer', inTerminal, async () => {
  await runs('sluice upload note.txt --to main/asked.txt');
  for (const [answer, code, rest] of [
    ['n', 2, 'nothing was changed'],
    ['', 2, 'nothing was changed'],
    ['yes', 0, 'deleted main/asked.txt'],
  ] as const) {
    await terminal.clear();
    await terminal.enter('sluice files rm main/asked.txt; echo "ended with $?"');
    await terminal.until('the question', (screen) => screen.includes('Delete main/asked.txt? [y/N]'));
    await terminal.enter(answer);
    const screen = await terminal.until('the end', (text) => /^ended with/m.test(text));
    assert.ok(screen.includes(`ended with ${code}`) && screen.includes(rest), screen);
  }
});

test('Ctrl-C at a question, and while waiting, ends with 130 and a usable terminal', inTerminal, async () => {
  await runs('sluice upload note.txt --to main/kept.txt');
  await terminal.clear();
  await terminal.enter('sluice files rm main/kept.txt; echo "ended with $?"');
  await terminal.until('the question', (screen) => screen.includes('[y/N]'));
  await terminal.press('C-c');
  await terminal.until('the end', (text) => text.includes('ended with 130'));
  await terminal.clear();
  await terminal.enter('sluice upload - --to main/never.txt');
  await terminal.until('the upload waits', (screen) => screen.includes('upload -'));
  await terminal.until('the bar', () => terminal.recorded().split('main/never.txt').length > 2);
  await terminal.press('C-c');
  // bash forgets the rest of a line that was interrupted.
  await terminal.until('the prompt', (screen) => /^\$$/m.test(screen));
  await terminal.enter('echo "ended with $?"');
  await terminal.until('the end', (text) => text.includes('ended with 130'));
  const { screen } = await runs('sluice files ls main/kept.txt');
  assert.match(screen, /kept\.txt/);
});

test('Ctrl-C in an editor belongs to the editor, and the letter is changed', inTerminal, async () => {
  const editor = join(server.folder, 'edit.sh');
  const waits = `trap '' INT; echo 'in the editor'; read -r answer; echo "{\\"to\\":\\"$answer\\"}" > "$1"`;
  await writeFile(editor, `#!/bin/sh\ncase "$1" in */sluice-edit-*/data.json) ${waits} ;; esac\n`);
  await chmod(editor, 0o755);
  const added = await server.run(['jobs', 'add', 'default', '{"to":"ada"}', '--attempts', '1']);
  const id = added.stdout.trim();
  const shown = (): Promise<Ran> => server.run(['dead', 'show', 'default', id, '--json']);
  await waitUntil('it is dead', async () => (await shown()).code === 0, { timeoutMs: 60_000 });
  await terminal.clear();
  await terminal.enter(`EDITOR='${editor}' sluice dead edit default ${id}; echo "ended with $?"`);
  await terminal.until('the editor', (screen) => screen.includes('in the editor'));
  await terminal.press('C-c');
  await terminal.enter('eve');
  await terminal.until('the end', (screen) => /changed\nended with 0/.test(screen));
  assert.deepEqual((JSON.parse((await shown()).stdout) as { data: unknown }).data, { to: 'eve' });
});

test('a key that is typed is not shown', inTerminal, async () => {
  await terminal.clear();
  await terminal.enter('sluice login; echo "ended with $?"');
  await terminal.until('the question', (screen) => screen.includes('Key (empty'));
  await terminal.enter('slk_not_to_be_seen_1234567890');
  const screen = await terminal.until('the end', (text) => /^ended with/m.test(text));
  assert.ok(screen.includes('ended with 4'), screen);
  assert.ok(!terminal.recorded().includes('not_to_be_seen'));
});

test('Tab completes commands and proposes several', inTerminal, async () => {
  await runs('eval "$(sluice completion bash)"');
  await terminal.clear();
  await terminal.type('sluice dea');
  await terminal.press('Tab');
  await terminal.until('the command', (screen) => screen.includes('sluice dead'));
  await terminal.type('r');
  await terminal.press('Tab', 'Tab');
  await terminal.until('the proposals', (screen) => /replay\s+rm/.test(screen));
  await terminal.press('C-u');
  await terminal.clear();
  await terminal.type('sluice upload fil');
  await terminal.press('Tab');
  await terminal.until('the name of a file', (screen) => screen.includes('sluice upload film.bin'));
  await terminal.press('C-c');
});

test('tables and help fit the width of the terminal, in colours', inTerminal, async () => {
  await terminal.resize(44, 30);
  const { screen } = await runs('sluice files ls main');
  for (const line of screen.split('\n')) assert.ok(line.length <= 44, line);
  assert.match(screen, /SIZE +(CHANGED +)?NAME/);
  await terminal.until('a dim head', () => terminal.recorded().includes('\x1b[2mSIZE'));
  await terminal.resize(100, 30);
});

test('top takes the other screen, follows its size, and gives everything back', inTerminal, async () => {
  await runs('echo before');
  await terminal.enter('sluice top --every 1s; echo "ended with $?"');
  await terminal.until('the queues', (screen) => /QUEUE +STATE/.test(screen) && screen.includes('default'));
  assert.ok(await terminal.isAlternate());
  await terminal.resize(60, 12);
  const small = await terminal.until(
    'the smaller screen',
    (screen) => screen.trimEnd().split('\n').length <= 12 && screen.includes('q quit'),
  );
  for (const line of small.split('\n')) assert.ok(line.length <= 60, line);
  await terminal.press('s');
  await terminal.until('another order', (screen) => screen.includes('sort (waiting)'));
  await terminal.press('Space');
  await terminal.until('it stands still', (screen) => screen.includes('still'));
  await terminal.resize(100, 30);
  await terminal.press('q');
  const screen = await terminal.until('the end', (text) => text.includes('ended with 0'));
  assert.ok(!(await terminal.isAlternate()));
  assert.match(screen, /before/, 'what was there is there again');
});
