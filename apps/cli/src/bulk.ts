// The same change to several things: each is tried, each failure is told, and the exit code says whether all worked.
import type { Context } from './context.js';
import { cliErrors } from './errors.js';
import { exitCodes, exitCodeOf } from './exitCodes.js';
import { sentence } from './output.js';
import { safeLine } from './sanitise.js';

export interface Change {
  /** What it is about, for a program; an id unless stated. */
  of?: (id: string) => object;
  /** For a dry run: fails where the change would find nothing. */
  look: (id: string) => Promise<unknown>;
  change: (id: string) => Promise<object | undefined>;
  would: (id: string) => string;
  did: (id: string) => string;
}

export async function forEach(
  { out, signal }: Context,
  ids: readonly string[],
  { dryRun = false }: { dryRun?: boolean },
  { of = (id) => ({ id }), look, change, would, did }: Change,
): Promise<void> {
  const failures: unknown[] = [];
  for (const id of ids) {
    signal.throwIfAborted();
    try {
      const answer = dryRun ? await look(id) : await change(id);
      if (dryRun) out.would(of(id), would(id));
      else out.did({ ...of(id), ...(answer as object) }, did(id));
    } catch (error) {
      // What concerns all of them is not said for each.
      const code = exitCodeOf(error);
      const concernsAll = [exitCodes.serverAway, exitCodes.notAllowed, exitCodes.interrupted].some(
        (all) => all === code,
      );
      if (ids.length === 1 || concernsAll) throw error;
      failures.push(error);
      const text = safeLine(`${id}: ${(error as Error).message}`);
      out.stderr.write(sentence(out.stderr, text, 'failed:', out.saying.red));
    }
  }
  if (failures.length > 0) throw cliErrors.SOME_FAILED({ failed: failures.length, total: ids.length });
}
