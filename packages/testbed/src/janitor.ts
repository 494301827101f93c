/**
 * Owns every process and folder the testbed makes, and ends them when the test process ends, however it ends.
 *
 * A normal exit is handled here, synchronously. A hard death (kill -9, a crash, Ctrl-C) runs no JavaScript, so
 * a small shell process waits beside us on a pipe: the pipe closes when we are gone, and the shell then kills
 * what was still listed and removes the folder. It is detached, so that a Ctrl-C meant for us does not end it
 * first. The alternative, signal handlers, misses kill -9 and fights with handlers of the tests themselves.
 *
 * A server that is killed so leaves behind what it had started itself, its own Redis for example. Those work in the folder, and are
 * found by that.
 */
import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const WATCH_SCRIPT = `
pids=" "
while read -r verb pid; do
  case $verb in
    born) pids="$pids$pid " ;;
    gone) pids="\${pids%% $pid *} \${pids#* $pid }" ;;
  esac
done
if [ -n "\${pids# }" ]; then
  kill -9 $pids 2>/dev/null
  for process in /proc/[0-9]*; do
    case $(readlink "$process/cwd") in "$1"/*) kill -9 "\${process#/proc/}" ;; esac
  done 2>/dev/null
fi
rm -rf "$1"
`;

const owned = new Set<ChildProcess>();
let folder: string | undefined;
let watcher: ChildProcess | undefined;
let nextName = 1;

/** Starts a process that cannot outlive this one. */
export function spawnOwned(command: string, args: string[], options: SpawnOptions = {}): ChildProcess {
  watch();
  const child = spawn(command, args, options);
  if (child.pid === undefined) return child;
  const pid = child.pid;
  owned.add(child);
  tellWatcher(`born ${pid}`);
  child.once('exit', () => {
    owned.delete(child);
    tellWatcher(`gone ${pid}`);
  });
  return child;
}

/** Makes a folder below this process's own temporary folder. */
export function makeOwnedFolder(name: string): string {
  watch();
  const made = join(folder!, `${name}-${nextName++}`);
  mkdirSync(made, { recursive: true });
  return made;
}

function watch(): void {
  if (watcher !== undefined) return;
  folder = mkdtempSync(join(tmpdir(), 'sluice-testbed-'));
  watcher = spawn('sh', ['-c', WATCH_SCRIPT, 'sluice-testbed-janitor', folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  // Neither the process nor its pipe may keep a finished test alive.
  watcher.unref();
  (watcher.stdin as unknown as { unref(): void }).unref();
  watcher.stdin!.on('error', () => {});
  process.once('exit', endEverything);
}

function tellWatcher(line: string): void {
  watcher!.stdin!.write(`${line}\n`);
}

function endEverything(): void {
  for (const child of owned) child.kill('SIGKILL');
  rmSync(folder!, { recursive: true, force: true, maxRetries: 3 });
}
