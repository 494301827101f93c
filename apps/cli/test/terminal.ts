/**
 * A real pseudo-terminal: a tmux of its own, in the foreground so that it cannot outlive the test, with one bash in it. What is
 * typed is typed, what is seen is what a person would see, and everything that was ever written to it is recorded beside.
 */
import { execFile, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { spawnOwned, waitUntil } from '@sluice/testbed';
import { CLI } from './commandLine.js';

const PATIENCE_MS = 60_000;
/** Each look at the screen is a process. */
const LOOK_MS = 50;
const run = promisify(execFile);

/** Why a test in a terminal cannot run here; false when it can. With CI=true it is not skipped, and fails. */
export const noTerminal: string | false =
  process.env['CI'] === 'true' || spawnSync('tmux', ['-V']).status === 0
    ? false
    : 'there is no tmux; install it: apt-get install tmux';

export interface TerminalOptions {
  folder: string;
  env: Record<string, string>;
  columns?: number;
  rows?: number;
  /** Of its socket, where one folder has several terminals. */
  name?: string;
}

export interface Seen {
  /** Lines as they were written: one that was too long for the terminal is one line here. */
  screen: string;
  code: number;
}

export class Terminal {
  readonly #tmux: string[];
  readonly #record: string;
  readonly #stop: () => void;
  #runs = 0;

  private constructor(tmux: string[], record: string, stop: () => void) {
    this.#tmux = tmux;
    this.#record = record;
    this.#stop = stop;
  }

  static async open({
    folder,
    env,
    columns = 100,
    rows = 30,
    name = 'tmux',
  }: TerminalOptions): Promise<Terminal> {
    const bin = join(folder, 'bin');
    mkdirSync(bin, { recursive: true });
    writeFileSync(join(bin, 'sluice'), `#!/bin/sh\nexec "${process.execPath}" "${CLI}" "$@"\n`);
    chmodSync(join(bin, 'sluice'), 0o755);
    const socket = join(folder, `${name}.sock`);
    const record = join(folder, `${name}.record`);
    const tmux = ['-S', socket, '-f', '/dev/null'];
    const { TMUX: _, ...outside } = process.env;
    const server = spawnOwned('tmux', [...tmux, '-D'], { env: outside, stdio: 'ignore' });
    await waitUntil('tmux listens', () => existsSync(socket), { timeoutMs: PATIENCE_MS });
    const inside = {
      ...env,
      PATH: `${bin}:${process.env['PATH']}`,
      PS1: '$ ',
      LANG: 'C.UTF-8',
      LC_ALL: 'C.UTF-8',
    };
    const variables = Object.entries(inside).map(([name, value]) => `${name}=${value}`);
    const size = ['-x', String(columns), '-y', String(rows)];
    // tmux has ideas of its own about the environment; env has none.
    const shell = ['env', ...variables, 'bash', '--norc', '--noprofile', '-i'];
    await run('tmux', [...tmux, 'new-session', '-d', ...size, '-c', folder, ...shell]);
    await run('tmux', [...tmux, 'set-option', '-g', 'window-size', 'manual']);
    await run('tmux', [...tmux, 'pipe-pane', `cat >> ${record}`]);
    const terminal = new Terminal(tmux, record, () => server.kill('SIGTERM'));
    await terminal.until('the prompt', (screen) => screen.includes('$'));
    return terminal;
  }

  /** Text, letter by letter. */
  async type(text: string): Promise<void> {
    await this.#ask('send-keys', '-l', text);
  }

  /** Keys by name: Enter, Tab, C-c, Space. */
  async press(...keys: string[]): Promise<void> {
    await this.#ask('send-keys', ...keys);
  }

  async enter(line: string): Promise<void> {
    await this.#ask('send-keys', '-l', line, ';', 'send-keys', 'Enter');
  }

  /** Runs a line on an empty screen, and returns what it left there, with its exit code. `meanwhile` types what the command waits for. */
  async runs(line: string, meanwhile?: () => Promise<void>): Promise<Seen> {
    this.#runs += 1;
    const end = `ended ${this.#runs} with`;
    const begin = `begun ${this.#runs}\n`;
    await this.enter(`clear; echo begun ${this.#runs}; ${line}; echo "${end} $?"`);
    if (meanwhile) {
      // A question of the line before must not be taken for one of this.
      await this.until('the beginning', (text) => text.startsWith(begin));
      await meanwhile();
    }
    // The end is not what was typed but what came of it.
    const isOver = new RegExp(`^${end} (\\d+)$`, 'm');
    const screen = await this.until(`the end of ${line}`, (text) => isOver.test(text), { joined: true });
    // The record is written beside, and a busy machine may be late with it: what comes next must not find the rest of this.
    const isRecorded = new RegExp(`${end} \\d`);
    await waitUntil('the record of it', () => isRecorded.test(this.recorded()), { timeoutMs: PATIENCE_MS });
    return {
      screen: screen.slice(begin.length, screen.search(isOver)),
      code: Number(isOver.exec(screen)![1]),
    };
  }

  /** The same for a line that only Ctrl-C ends: bash forgets the rest of a line that was interrupted. */
  async runsUntilInterrupted(
    line: string,
    what: string,
    isThere: (screen: string) => boolean,
  ): Promise<Seen> {
    await this.enter(`clear; ${line}`);
    const screen = await this.until(what, isThere, { joined: true });
    return { screen, code: await this.interrupts() };
  }

  /** Ctrl-C; returns what the command ended with. */
  async interrupts(timeoutMs = PATIENCE_MS): Promise<number> {
    await this.press('C-c');
    await this.until('the prompt', (text) => /^(\^C)?\$$/m.test(text), { timeoutMs });
    await this.enter('echo "code $?"');
    const isSaid = /^code (\d+)$/m;
    return Number(isSaid.exec(await this.until('the code', (text) => isSaid.test(text)))![1]);
  }

  /** An empty screen with the prompt: what was there before is not taken for what comes next. */
  async clear(): Promise<void> {
    let pressedAt = -Infinity;
    await waitUntil(
      'the screen is empty',
      async () => {
        // A key that comes before the prompt may be lost.
        if (performance.now() - pressedAt > 1_000) {
          await this.press('C-l');
          pressedAt = performance.now();
        }
        return (await this.screen()).trim() === '$';
      },
      { timeoutMs: PATIENCE_MS },
    );
  }

  screen({ joined = false } = {}): Promise<string> {
    return this.#ask('capture-pane', '-p', ...(joined ? ['-J'] : []));
  }

  /** Everything that was written, escape sequences and all. */
  recorded(): string {
    return existsSync(this.#record) ? readFileSync(this.#record, 'utf8') : '';
  }

  async until(
    what: string,
    isThere: (screen: string) => boolean,
    { joined = false, timeoutMs = PATIENCE_MS } = {},
  ): Promise<string> {
    let seen = '';
    await waitUntil(
      what,
      async () => {
        // With lines joined, tmux keeps the spaces that end them.
        seen = (await this.screen({ joined })).replace(/ +$/gm, '');
        return isThere(seen);
      },
      { timeoutMs, everyMs: LOOK_MS },
    ).catch((error: unknown) => {
      throw new Error(`${what} never came; the screen was:\n${seen}`, { cause: error });
    });
    return seen;
  }

  async resize(columns: number, rows: number): Promise<void> {
    await this.#ask('resize-window', '-x', String(columns), '-y', String(rows));
  }

  async isAlternate(): Promise<boolean> {
    return (await this.#ask('display-message', '-p', '#{alternate_on}')).trim() === '1';
  }

  /** Whether the cursor is shown. */
  async hasCursor(): Promise<boolean> {
    return (await this.#ask('display-message', '-p', '#{cursor_flag}')).trim() === '1';
  }

  close(): void {
    this.#stop();
  }

  async #ask(...args: string[]): Promise<string> {
    return (await run('tmux', [...this.#tmux, ...args])).stdout;
  }
}
