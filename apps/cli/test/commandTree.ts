/** The commands as the program itself declares them, so that a new one cannot be forgotten by a test. */
import { Writable } from 'node:stream';
import type { Command } from 'commander';
import type { SluiceCommand } from '../src/command.js';
import { readEnvironment } from '../src/config.js';
import { makeProgram } from '../src/program.js';

export function everyCommand(): SluiceCommand[] {
  const nowhere = (): Writable => new Writable({ write: (_chunk, _encoding, done) => done() });
  const program = makeProgram({
    stdin: process.stdin,
    stdout: nowhere(),
    stderr: nowhere(),
    environment: readEnvironment({}),
    signal: new AbortController().signal,
    lendTerminal: (work) => work(),
  });
  const below = (command: SluiceCommand): SluiceCommand[] => [
    command,
    ...(command.commands as SluiceCommand[]).flatMap(below),
  ];
  return below(program).filter((command) => !command.name().startsWith('_'));
}

/** Those that do something; the others are groups. */
export function leaves(): SluiceCommand[] {
  return everyCommand().filter((command) => command.commands.length === 0);
}

/** Its words, without the name of the program. */
export function pathTo(command: Command): string[] {
  return command.parent ? [...pathTo(command.parent), command.name()] : [];
}
