/**
 * The command line, run by a test. `runCli` runs it in this very process, in a world of its own: streams, environment, folder, Ctrl-C. A
 * hundred commands then cost what they do, not what a hundred starts of Node do. `spawnCli` runs the same words as a real process, for what
 * only a process has: its exit code, its pipes, its signals.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { spawnOwned } from '@sluice/testbed';
import { readEnvironment } from '../src/config.js';
import { run } from '../src/run.js';

export const CLI = fileURLToPath(new URL('../src/main.js', import.meta.url));

export interface RunOptions {
  /** What comes on stdin. */
  input?: string | Buffer;
  env?: Record<string, string | undefined>;
  cwd?: string;
  /** Whether the streams say that they are a terminal; for runCli. */
  isTerminal?: boolean;
  /** Of that terminal; for runCli. */
  columns?: number;
}

export interface Ran {
  code: number | null;
  stdout: string;
  stderr: string;
}

export async function runCli(args: string[], options: RunOptions = {}): Promise<Ran> {
  const { input, env, cwd, isTerminal = false, columns } = options;
  const [stdin, stdout, stderr] = [new PassThrough(), new Recorder(), new Recorder()];
  for (const stream of [stdin, stdout, stderr]) Object.assign(stream, { isTTY: isTerminal, columns });
  stdin.end(input ?? '');
  const code = await run(args, {
    ...{ stdin, stdout, stderr },
    environment: readEnvironment(lonely(env), cwd),
    signal: new AbortController().signal,
    lendTerminal: (work) => work(),
  });
  return { code, stdout: stdout.text, stderr: stderr.text };
}

export async function spawnCli(
  args: string[],
  { input, ...options }: Omit<RunOptions, 'isTerminal' | 'columns'> = {},
): Promise<Ran> {
  const child = startCli(args, options);
  const [stdout, stderr] = [new Recorder(), new Recorder()];
  child.stdout!.pipe(stdout);
  child.stderr!.pipe(stderr);
  child.stdin!.end(input ?? '');
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout: stdout.text, stderr: stderr.text };
}

/** The process itself, with all its pipes open, in a group of its own: a signal to the group is what Ctrl-C is on a terminal. */
export function startCli(args: string[], { env, cwd }: Pick<RunOptions, 'env' | 'cwd'> = {}): ChildProcess {
  const child = spawnOwned(process.execPath, [CLI, ...args], {
    env: lonely(env),
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
    ...(cwd !== undefined && { cwd }),
  });
  // A command that does not read closes the pipe, which is its right.
  child.stdin!.on('error', () => undefined);
  return child;
}

/** Nothing of the user's own may be seen or changed by a test. */
export function homeIn(folder: string): Record<string, string> {
  mkdirSync(join(folder, 'home'), { recursive: true });
  return {
    HOME: join(folder, 'home'),
    XDG_CONFIG_HOME: join(folder, 'config'),
    XDG_STATE_HOME: join(folder, 'state'),
  };
}

/** The lines of a list that came with --json. */
export function jsonLines<T = Record<string, unknown>>({ stdout }: Ran): T[] {
  return stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as T);
}

const inherited = ['PATH', 'TMPDIR', 'LANG', 'SLUICE_TEST_RUN'];

/** As little of our own environment as possible: no NO_COLOR, no key of ours. */
function lonely(env: Record<string, string | undefined> = {}): Record<string, string | undefined> {
  return { ...Object.fromEntries(inherited.map((name) => [name, process.env[name]])), ...env };
}

class Recorder extends Writable {
  readonly #chunks: Buffer[] = [];

  get text(): string {
    return Buffer.concat(this.#chunks).toString();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#chunks.push(chunk);
    done();
  }
}
