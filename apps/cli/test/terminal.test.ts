/** The command line in front of a person: a real terminal (tmux), a real bash, a real server that `sluice up` started in another one. */
import assert from 'node:assert/strict';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { makeOwnedFolder, waitUntil } from '@sluice/testbed';
import { homeIn } from './commandLine.js';
import { leaves, pathTo } from './commandTree.js';
import { serverOf, type RunningServer } from './runningServer.js';
import { noTerminal, Terminal, type Seen } from './terminal.js';
import { HANDLERS, harmlessLines, keyTries, narrowLines, openTries, prepare } from './tries.js';
import type { Known, Try } from './tries.js';

const inTerminal = { skip: noTerminal };
/** A first start makes a database, which takes its time on a busy machine. */
const START_TIMEOUT_MS = 120_000;
const PATIENCE_MS = 60_000;
const COLUMNS = 80;
/** High enough for whatever a command prints. */
const ROWS = 150;
const NARROW = 60;
/** So many of the narrow ones are run in the terminal, too; each costs a start of Node. */
const SEEN_NARROW = 6;
const ESCAPE = '\x1b';
let house: Terminal;
let server: RunningServer;
let terminal: Terminal;
let receiver: Server;
let known: Known;
/** Of a try that has been made. */
const tried = new Set<string>();

before(async () => {
  if (noTerminal !== false) return;
  const folder = makeOwnedFolder('cli');
  const handlers = join(folder, 'handlers.mjs');
  await writeFile(handlers, HANDLERS);
  const settings = { SLUICE_HANDLERS: handlers, SLUICE_WEBHOOK_ALLOW: '127.0.0.0/8' };
  house = await Terminal.open({
    folder,
    name: 'house',
    env: { ...homeIn(folder), ...settings },
    columns: 200,
  });
  await house.enter('sluice up --port 0 --data data');
  const runs = (screen: string): boolean => /^Upload a file: /m.test(screen) || /\n\$ *\n/.test(screen);
  const welcome = await house.until('the server runs', runs, { timeoutMs: START_TIMEOUT_MS });
  assert.match(welcome, /^Upload a file: /m, 'it runs');
  server = serverOf(folder, welcome, async () => house.close());
  receiver = createServer((request, response) => {
    request.resume();
    response.writeHead(204).end();
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  terminal = await Terminal.open({ folder, env: server.env, columns: COLUMNS, rows: ROWS });
});
after(async () => {
  receiver?.close();
  terminal?.close();
  await server?.stop();
});

function runs(line: string): Promise<Seen> {
  return terminal.runs(line);
}

/** Words that end a list of which nothing is there. */
const LISTS = ['jobs ls mail', 'dead ls mail', 'dead groups', 'files ls main', 'audit'];
const LISTED = ['retry', 'schedules', 'uploads', 'operations', 'keys', 'webhooks'];

test('where there is nothing yet, every list says so', inTerminal, async () => {
  // First of all: the lists below are read through the cache.
  const { stdout } = await server.run(['status']);
  assert.match(stdout, /^cache +not read yet$/m);
  for (const line of [...LISTS, ...LISTED.map((name) => `${name} ls`)]) {
    const { code, stdout, stderr } = await server.run(line.split(' '), { isTerminal: true });
    assert.deepEqual([code, stdout, stderr], [0, '', 'none\n'], line);
  }
  // A server is never quite without events: its first drive is one, as soon as it is published.
  const tail = async (): Promise<string> => (await server.run(['events', 'tail', '--no-follow'])).stdout;
  await waitUntil('an event is published', async () => (await tail()) !== '', { timeoutMs: PATIENCE_MS });
  assert.match(await tail(), /^\S+ \S+ +repository\.drives\.created .*\n$/);
  known = await prepare(server, `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`);
});

test(
  'every command answers a script in JSON, or in plain words, and says nothing else',
  inTerminal,
  async () => {
    const lines = harmlessLines(known);
    for (const words of leaves().map(pathTo)) {
      const name = words.join(' ');
      assert.ok(name in lines, `there is no line for: sluice ${name}`);
      if (!lines[name]) continue;
      const line = [...words, ...lines[name]];
      const json = await server.run([...line, '--json']);
      // What is not found says so, as JSON as well.
      assert.ok(json.code === 0 || (json.code === 3 && json.stdout === ''), `${name}: ${json.stderr}`);
      const documents = (json.code === 0 ? json.stdout : json.stderr).split('\n').filter(Boolean);
      for (const document of documents)
        assert.doesNotThrow(() => void JSON.parse(document), `${name}: ${document}`);
      const { code, stdout, stderr } = await server.run(line);
      assert.equal(code, json.code, name);
      if (code === 0) assert.equal(stderr, '', name);
      else assert.match(stderr, /^sluice: .+\n$/, name);
      assert.doesNotMatch(stdout, /(?![\n\t])[\p{Cc}\p{Bidi_Control}]/u, name);
      assert.doesNotMatch(stdout, /undefined|NaN|\[object/, name);
    }
  },
);

test('tables fit a narrow terminal', inTerminal, async () => {
  const lines = narrowLines(known);
  for (const line of lines) {
    const { stdout, stderr } = await server.run(line.split(' '), { isTerminal: true, columns: NARROW });
    for (const text of stripped(stdout + stderr).split('\n'))
      assert.ok(text.length <= NARROW, `${line}: ${text}`);
  }
  await terminal.resize(NARROW, ROWS);
  const words = lines.slice(0, SEEN_NARROW).map((line) => `'${line}'`);
  const { screen } = await runs(`for line in ${words.join(' ')}; do sluice $line; done`);
  for (const text of screen.split('\n')) assert.ok(text.length <= NARROW, text);
  for (const head of [/^QUEUE +STATE +WAITING/m, /^ID +STATE +ADDED/m, /^ *SIZE /m, /^WHEN +WHO/m])
    assert.match(screen, head);
  await terminal.resize(COLUMNS, ROWS);
});

/** Without the colours. */
function stripped(text: string): string {
  return text
    .split(ESCAPE)
    .map((part, i) => (i === 0 ? part : part.replace(/^\[\d+m/, '')))
    .join('');
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

test('the bars of uploads and downloads are on stderr alone', inTerminal, async () => {
  for (const [line, printed] of [
    ['sluice upload film.bin --to main/bars.bin', /^main\/bars\.bin {2}19\.1 MiB {2}[0-9a-f-]{36}\n$/],
    ['sluice download main/bars.bin bars.bin', /^$/],
  ] as const) {
    const before = terminal.recorded().length;
    assert.equal((await runs(`${line} > out.txt`)).code, 0);
    await terminal.until('a bar', () => /\[█*░+\]/.test(terminal.recorded().slice(before)));
    assert.match(await readFile(join(server.folder, 'out.txt'), 'utf8'), printed);
  }
});

test('what destroys asks, and takes no for an answer', inTerminal, async () => {
  await server.run(['upload', 'note.txt', '--to', 'main/asked.txt']);
  for (const [answer, code, rest] of [
    ['n', 2, 'nothing was changed'],
    ['', 2, 'nothing was changed'],
    ['yes', 0, 'deleted main/asked.txt'],
  ] as const) {
    const seen = await terminal.runs('sluice files rm main/asked.txt', async () => {
      await terminal.until('the question', (screen) => screen.includes('Delete main/asked.txt? [y/N]'));
      await terminal.enter(answer);
    });
    assert.equal(seen.code, code);
    assert.ok(seen.screen.includes(rest), seen.screen);
  }
});

test('Ctrl-C at a question, and while waiting, ends with 130 and a usable terminal', inTerminal, async () => {
  const asked = await terminal.runs('sluice files rm main/note.txt', async () => {
    await terminal.until('the question', (screen) => screen.includes('[y/N]'));
    await terminal.press('C-c');
  });
  assert.equal(asked.code, 130);
  const isWaiting = (): boolean => terminal.recorded().split('main/never.txt').length > 2;
  const waited = await terminal.runsUntilInterrupted(
    'sluice upload - --to main/never.txt',
    'the bar',
    isWaiting,
  );
  assert.equal(waited.code, 130);
  const { screen } = await runs('sluice files ls main/note.txt');
  assert.match(screen, /note\.txt/);
});

test('Ctrl-C in an editor belongs to the editor, and the letter is changed', inTerminal, async () => {
  const editor = join(server.folder, 'stubborn.sh');
  const waits = `trap '' INT; echo 'in the editor'; read -r answer; echo "{\\"to\\":\\"$answer\\"}" > "$1"`;
  await writeFile(editor, `#!/bin/sh\ncase "$1" in */sluice-edit-*/data.json) ${waits} ;; esac\n`);
  await chmod(editor, 0o755);
  const seen = await terminal.runs(`EDITOR='${editor}' sluice dead edit mail dead-9`, async () => {
    await terminal.until('the editor', (screen) => screen.includes('in the editor'));
    await terminal.press('C-c');
    await terminal.enter('eve');
  });
  assert.equal(seen.code, 0, seen.screen);
  assert.match(seen.screen, /: changed$/m);
  const shown = await server.run(['dead', 'show', 'mail', 'dead-9', '--json']);
  assert.deepEqual((JSON.parse(shown.stdout) as { data: unknown }).data, { to: 'eve' });
});

test('a key that is typed is not shown', inTerminal, async () => {
  const seen = await terminal.runs('sluice login', async () => {
    await terminal.until('the question', (screen) => screen.includes('Key (empty'));
    await terminal.enter('slk_not_to_be_seen_1234567890');
  });
  assert.equal(seen.code, 4, seen.screen);
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

test('colours are seen on a terminal, and not with NO_COLOR', inTerminal, async () => {
  const written = async (line: string): Promise<string> => {
    const before = terminal.recorded().length;
    const { screen } = await runs(line);
    assert.match(screen, /^mail +running /m);
    await terminal.until('the record', () => terminal.recorded().slice(before).includes('running'));
    return terminal.recorded().slice(before);
  };
  const coloured = await written('sluice queues ls');
  for (const text of ['[2mQUEUE', '[32mrunning']) assert.ok(coloured.includes(ESCAPE + text), coloured);
  const plain = await written('NO_COLOR=1 sluice queues ls');
  assert.ok(!plain.split(ESCAPE).some((part) => /^\[\d+m/.test(part)), plain);
});

test('top takes the other screen, follows its size, and gives everything back', inTerminal, async () => {
  const { screen: modes } = await runs('stty -g; echo before');
  await terminal.enter('sluice top --every 1s; echo "ended with $?"; stty -g');
  await terminal.until('the queues', (screen) => /QUEUE +STATE/.test(screen) && screen.includes('mail'));
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
  await terminal.resize(COLUMNS, ROWS);
  await terminal.press('q');
  const mode = modes.split('\n')[0]!;
  const isOver = (text: string): boolean => text.includes(`ended with 0\n${mode}`);
  const screen = await terminal.until('the end', isOver, { joined: true });
  assert.ok(!(await terminal.isAlternate()));
  assert.ok(await terminal.hasCursor());
  assert.match(screen, /before/, 'what was there is there again');
});

test('mistakes are a sentence that fits the terminal, and what to do', inTerminal, async () => {
  for (const [line, code, shows] of [
    ['queeus ls', 2, /^sluice: unknown command 'queeus'\n\(Did you mean queues\?\)\nSee: sluice --help$/m],
    [
      'help dead replya',
      2,
      /^sluice: unknown command 'replya'\n\(Did you mean replay\?\)\nSee: sluice dead --help$/m,
    ],
    ['jobs ls', 2, /^sluice: missing required argument 'queue'\nSee: sluice jobs ls --help$/m],
    ['jobs show nothing', 3, /^sluice: no queue knows a job "nothing"$/m],
    ['jobs ls mial', 3, /^sluice: There is no queue "mial" here; there is/m],
    [
      'queues ls --url http://127.0.0.1:9',
      5,
      /^sluice: no answer from \S+ \(nobody listens there\); is the server/m,
    ],
    ['status --key slk_wrong', 4, /ready\nsluice: \S+ does not accept this key\nSign in with: sluice login/m],
  ] as const) {
    const seen = await runs(`sluice ${line}`);
    assert.equal(seen.code, code, seen.screen);
    assert.match(seen.screen, shows);
    inspect(line, seen.screen);
  }
});

/** What nobody should see, whatever was asked. */
function inspect(line: string, screen: string, { wide = false } = {}): void {
  assert.ok(!screen.includes(ESCAPE), `${line}: an escape code`);
  assert.doesNotMatch(screen, /\^\[|(?<!\\x1b|\\u001b)\[\d+m/, `${line}: an escape code`);
  assert.doesNotMatch(screen, /undefined|NaN|\[object/, line);
  if (wide) return;
  assert.doesNotMatch(screen, /^ +at .*:\d+:\d+/m, `${line}: a stack`);
  // A question stands before its answer, however long it is.
  for (const text of screen.split('\n').filter((one) => !one.includes('[y/N]')))
    assert.ok(text.length <= COLUMNS, `${line}: ${text}`);
}

/** As the shell takes a line apart. */
function wordsOf(line: string): string[] {
  return (line.match(/'[^']*'|\S+/g) ?? []).map((word) => word.replace(/^'|'$/g, ''));
}

async function tryOut(one: Try): Promise<void> {
  const { line, shows, before, code = 0, asks, meanwhile, endless, wide, keeps } = one;
  await before?.(server);
  const whole = line.includes('sluice ') ? line : `sluice ${line}`;
  const words = whole.slice(whole.indexOf('sluice ') + 'sluice '.length).split(' ');
  tried.add(
    leaves()
      .map((leaf) => pathTo(leaf).join(' '))
      .find((path) => `${words.join(' ')} `.startsWith(`${path} `))!,
  );
  const isAsked = (screen: string): boolean => asks!.test(screen);
  if (endless) {
    const seen = await terminal.runsUntilInterrupted(whole, line, (screen) =>
      shows.every((one) => one.test(screen)),
    );
    inspect(line, seen.screen.replaceAll('^C', ''), wide && { wide });
    return assert.equal(seen.code, 130, line);
  }
  const answering = (answer: string) => async (): Promise<void> => {
    await terminal.until(`the question of ${line}`, isAsked);
    await terminal.enter(answer);
  };
  if (asks) {
    // A no is the same in any world; there it costs no start of Node.
    const refused = await server.run(wordsOf(line), { input: 'n\n', isTerminal: true });
    assert.equal(refused.code, 2, refused.stderr);
    assert.match(refused.stderr, /sluice:\S* nothing was changed: the answer was no\n$/);
  }
  const seen = await terminal.runs(whole, asks ? answering('y') : meanwhile && (() => meanwhile(terminal)));
  assert.equal(seen.code, code, `${line}: ${seen.screen}`);
  for (const one of shows) assert.match(seen.screen, one, line);
  inspect(line, seen.screen, wide && { wide });
  if (keeps) known[keeps[0]] = keeps[1].exec(seen.screen)![1]!;
}

test(
  'every command is tried in a terminal: what it shows, what it asks, and how it ends',
  inTerminal,
  async () => {
    for (const one of [...openTries(known), ...keyTries]) await tryOut(one(known));
  },
);

test('up runs until Ctrl-C and ends in order; every command has been tried', inTerminal, async () => {
  assert.equal(await house.interrupts(START_TIMEOUT_MS), 0);
  await house.until('the last word', () => /^Stopped\r?$/m.test(house.recorded()));
  await assert.rejects(fetch(`${server.url}/healthz`));
  tried.add('up');
  const missing = leaves()
    .map((leaf) => pathTo(leaf).join(' '))
    .filter((path) => !tried.has(path));
  assert.deepEqual(missing, [], 'a command that nobody tried');
});
