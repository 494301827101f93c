// The command `sluice` as a process: its streams, its signals, its exit code. What it does is in run.ts. A closed pipe is no failure;
// Ctrl-C ends in order, twice at once.
import { readEnvironment } from './config.js';
import type { World } from './context.js';
import { exitCodes } from './exitCodes.js';
import { run } from './run.js';

/** A command that does not hear Ctrl-C is ended after this time. */
const patienceMs = 3_000;

async function main(): Promise<void> {
  forgiveClosedPipes();
  const { stdin, stdout, stderr } = process;
  const world: World = { stdin, stdout, stderr, environment: readEnvironment(), ...interrupts() };
  process.exitCode = await run(process.argv.slice(2), world);
  // A stdin that somebody may still write to would keep us.
  stdin.unref?.();
}

function interrupts(): Pick<World, 'signal' | 'lendTerminal'> {
  const stop = new AbortController();
  let isLent = false;
  process.on('SIGINT', () => {
    if (isLent) return;
    if (stop.signal.aborted) process.exit(exitCodes.interrupted);
    stop.abort();
    setTimeout(() => process.exit(exitCodes.interrupted), patienceMs).unref();
  });
  const lendTerminal: World['lendTerminal'] = async (work) => {
    isLent = true;
    return work().finally(() => (isLent = false));
  };
  return { signal: stop.signal, lendTerminal };
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
