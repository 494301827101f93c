// One command line, run once in a world: the words that were typed, and streams, environment and Ctrl-C from whoever calls. What goes wrong
// is a sentence on stderr, not a stack, and a code that scripts can rely on. main.ts brings the world of a process; tests bring others, as
// many as they like in one process.
import { CommanderError } from 'commander';
import { isSluiceError } from '@sluice/base';
import { colourOf } from './colour.js';
import type { SluiceCommand } from './command.js';
import type { World } from './context.js';
import { ApiError } from './errors.js';
import { exitCodes, exitCodeOf, isAbort } from './exitCodes.js';
import { sentence } from './output.js';
import { makeProgram } from './program.js';
import { safeJson, safeLine } from './sanitise.js';

/** Resolves to the exit code; never rejects. */
export async function run(words: readonly string[], world: World): Promise<number> {
  try {
    const program = makeProgram(world);
    throwAtEveryLevel(program);
    program.rawWords = [...words];
    await program.parseAsync(words, { from: 'user' });
    if (program.exitCode !== undefined) return program.exitCode;
    return world.signal.aborted ? exitCodes.interrupted : exitCodes.ok;
  } catch (error) {
    return complain(error, words, world);
  }
}

/** Commander would end the process. What it complains about is followed by where to read more. */
function throwAtEveryLevel(command: SluiceCommand, path = 'sluice'): void {
  command.exitOverride();
  command.showHelpAfterError(`See: ${path} --help`);
  for (const below of command.commands) throwAtEveryLevel(below as SluiceCommand, `${path} ${below.name()}`);
}

function complain(error: unknown, words: readonly string[], { environment, stderr }: World): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.misuse;
  const code = exitCodeOf(error);
  if (isAbort(error)) return code;
  const isColoured =
    environment.colour === 'always' || (environment.colour === 'auto' && stderr.isTTY === true);
  if (words.includes('--json'))
    stderr.write(`${safeJson(JSON.stringify({ error: described(error, code) }))}\n`);
  else {
    const text = safeLine((error as Error).message ?? String(error));
    stderr.write(sentence(stderr, text, 'sluice:', colourOf(isColoured).red));
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
