/**
 * Finds and ends the processes a test run left behind. Every process of a run inherits a mark in its environment,
 * and Linux shows each process's environment under /proc. Redis and PostgreSQL write their titles over it; they work
 * in the temporary folder of the run.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** Servers are ended by a watcher beside the test process, a moment after it. */
const GRACE_MS = 10_000;
const LOOK_EVERY_MS = 50;

/** Waits a moment for the last ones to go; kills and returns those that stayed. */
export async function endLeftovers(mark, folder) {
  const deadline = performance.now() + GRACE_MS;
  const look = () => processesOf(mark, folder);
  while (look().length > 0 && performance.now() < deadline) await sleep(LOOK_EVERY_MS);
  const stayed = look();
  for (const { pid } of stayed) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It went in between.
    }
  }
  return stayed;
}

function processesOf(mark, folder) {
  const found = [];
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    try {
      const isMarked = readFileSync(`/proc/${pid}/environ`, 'latin1').includes(mark);
      if (!isMarked && !readlinkSync(`/proc/${pid}/cwd`).startsWith(`${folder}/`)) continue;
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
      // A process that ended and was not yet collected has no command line.
      if (command) found.push({ pid, command });
    } catch {
      // It went in between, or is not ours to read.
    }
  }
  return found;
}
