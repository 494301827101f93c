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
}

export class Terminal {
  readonly #tmux: string[];
  readonly #record: string;
  readonly #stop: () => void;

  private constructor(tmux: string[], record: string, stop: () => void) {
    this.#tmux = tmux;
    this.#record = record;
    this.#stop = stop;
  }

  static async open({ folder, env, columns = 100, rows = 30 }: TerminalOptions): Promise<Terminal> {
    const bin = join(folder, 'bin');
    mkdirSync(bin, { recursive: true });
    writeFileSync(join(bin, 'sluice'), `#!/bin/sh\nexec "${process.execPath}" "${CLI}" "$@"\n`);
    chmodSync(join(bin, 'sluice'), 0o755);
    const socket = join(folder, 'tmux.sock');
    const record = join(folder, `record-${Date.now()}.txt`);
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
    await this.type(line);
    await this.press('Enter');
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

  screen(): Promise<string> {
    return this.#ask('capture-pane', '-p');
  }

  /** Everything that was written, escape sequences and all. */
  recorded(): string {
    return existsSync(this.#record) ? readFileSync(this.#record, 'utf8') : '';
  }

  async until(what: string, isThere: (screen: string) => boolean): Promise<string> {
    let seen = '';
    await waitUntil(
      what,
      async () => {
        seen = await this.screen();
        return isThere(seen);
      },
      { timeoutMs: PATIENCE_MS },
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

  close(): void {
    this.#stop();
  }

  async #ask(...args: string[]): Promise<string> {
    return (await run('tmux', [...this.#tmux, ...args])).stdout;
  }
}
