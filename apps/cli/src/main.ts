// The command `sluice`: runs the tree of commands once and ends with a code that scripts can rely on. What goes wrong is a sentence, not
// a stack; a closed pipe is no failure; Ctrl-C ends in order, twice at once.
import { CommanderError } from 'commander';
import { isSluiceError } from '@sluice/base';
import { readEnvironment } from './config.js';
import type { World } from './context.js';
import { ApiError } from './errors.js';
import { exitCodes, exitCodeOf, isAbort } from './exitCodes.js';
import { makeProgram } from './program.js';
import { colourOf } from './colour.js';
import { safeJson, safeLine } from './sanitise.js';

/** A command that does not hear Ctrl-C is ended after this time. */
const patienceMs = 3_000;

async function main(): Promise<void> {
  const stop = new AbortController();
  obeyInterrupts(stop);
  forgiveClosedPipes();
  const { stdin, stdout, stderr } = process;
  const world: World = { stdin, stdout, stderr, environment: readEnvironment(), signal: stop.signal };
  const program = makeProgram(world);
  quieten(program);
  program.rawWords = process.argv.slice(2);
  try {
    await program.parseAsync();
    if (stop.signal.aborted) process.exitCode = exitCodes.interrupted;
  } catch (error) {
    process.exitCode = complain(error, world);
  }
  // A stdin that somebody may still write to would keep us.
  stdin.unref?.();
}

function complain(error: unknown, { environment, stderr }: World): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.misuse;
  const code = exitCodeOf(error);
  if (isAbort(error)) return code;
  const isColoured =
    environment.colour === 'always' || (environment.colour === 'auto' && stderr.isTTY === true);
  if (process.argv.includes('--json'))
    stderr.write(`${safeJson(JSON.stringify({ error: described(error, code) }))}\n`);
  else {
    stderr.write(
      `${colourOf(isColoured).red('sluice:')} ${safeLine((error as Error).message ?? String(error))}\n`,
    );
    if (error instanceof ApiError && error.status === 401)
      stderr.write('Sign in with: sluice login, or set SLUICE_KEY\n');
    if (error instanceof ApiError && error.requestId !== undefined && error.status >= 500)
      stderr.write(`request ${safeLine(error.requestId)}: the log of the server says more\n`);
  }
  return code;
}

function described(error: unknown, exitCode: number): object {
  const { message } = error as Error;
  if (!isSluiceError(error)) return { code: 'UNEXPECTED', message, exitCode };
  const { requestId } = error as Partial<ApiError>;
  return {
    code: error.code,
    message,
    retryable: error.retryable,
    exitCode,
    ...(requestId !== undefined && { requestId }),
  };
}

/** Commander shall throw instead of ending the process, at every level. */
function quieten(program: ReturnType<typeof makeProgram>): void {
  const visit = (command: (typeof program.commands)[number]): void => {
    command.exitOverride();
    command.commands.forEach(visit);
  };
  visit(program);
}

function obeyInterrupts(stop: AbortController): void {
  process.on('SIGINT', () => {
    if (stop.signal.aborted) process.exit(exitCodes.interrupted);
    stop.abort();
    setTimeout(() => process.exit(exitCodes.interrupted), patienceMs).unref();
  });
}

/** `sluice jobs ls mail --all | head`: whoever has read enough closes the pipe. */
function forgiveClosedPipes(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE') process.exit(exitCodes.ok);
      throw error;
    });
  }
}

await main();
