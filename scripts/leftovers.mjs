/**
 * Finds and ends the processes a test run left behind. Every process of a run inherits a mark in its environment,
 * and Linux shows each process's environment under /proc: nothing else is needed for telling ours from others'.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** Servers are ended by a watcher beside the test process, a moment after it. */
const GRACE_MS = 3_000;
const LOOK_EVERY_MS = 50;

/** Waits a moment for the last ones to go; kills and returns those that stayed. */
export async function endLeftovers(mark) {
  const deadline = performance.now() + GRACE_MS;
  while (processesWith(mark).length > 0 && performance.now() < deadline) await sleep(LOOK_EVERY_MS);
  const stayed = processesWith(mark);
  for (const { pid } of stayed) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It went in between.
    }
  }
  return stayed;
}

function processesWith(mark) {
  const found = [];
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    try {
      if (!readFileSync(`/proc/${pid}/environ`, 'latin1').includes(mark)) continue;
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
      // A process that ended and was not yet collected has no command line.
      if (command) found.push({ pid, command });
    } catch {
      // It went in between, or is not ours to read.
    }
  }
  return found;
}
