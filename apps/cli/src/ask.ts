// A question before something is lost. On a terminal it is asked; where nobody can answer, --yes has to have been said.
import { createInterface } from 'node:readline/promises';
import type { Readable } from 'node:stream';
import { cliErrors } from './errors.js';
import type { Output } from './output.js';
import { safeLine } from './sanitise.js';

export interface Answerer {
  stdin: Readable & { isTTY?: boolean };
  out: Output;
  signal: AbortSignal;
  /** --yes. */
  yes: boolean;
}

/** Resolves when it may go on; throws otherwise. */
export async function confirm({ stdin, out, signal, yes }: Answerer, question: string): Promise<void> {
  if (yes) return;
  if (!stdin.isTTY || !out.stderr.isTTY)
    throw cliErrors.NOT_CONFIRMED({ what: 'there is no terminal to ask on; say --yes if you mean it' });
  const answer = await askLine({ stdin, out, signal }, `${safeLine(question)} [y/N] `);
  if (!/^(y|yes)$/i.test(answer.trim())) throw cliErrors.NOT_CONFIRMED({ what: 'the answer was no' });
}

export async function askLine(
  { stdin, out, signal }: Omit<Answerer, 'yes'>,
  question: string,
): Promise<string> {
  const lines = createInterface({ input: stdin, output: out.stderr });
  // readline takes Ctrl-C for itself; whoever owns the signal shall hear of it.
  lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  const closed = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
  try {
    return await Promise.race([lines.question(question, { signal }), closed]);
  } finally {
    lines.close();
  }
}
