/**
 * Tells one process from another that got the same number later.
 *
 * A process id alone is a bad memory: after a reboot, or in a restarted container, it belongs to somebody else, and
 * signalling it would hit a stranger. The id together with the moment the process began is unique.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

export interface ProcessMark {
  pid: number;
  began: string;
}

export function markOf(pid: number): ProcessMark | undefined {
  const began = existsSync('/proc/self/stat') ? beganOnLinux(pid) : beganElsewhere(pid);
  return began === undefined ? undefined : { pid, began };
}

export function stillRuns(mark: ProcessMark): boolean {
  return markOf(mark.pid)?.began === mark.began;
}

/** Reads a mark that was written to a file; anything unreadable counts as nobody. */
export function readMark(file: string): ProcessMark | undefined {
  try {
    const { pid, began } = JSON.parse(readFileSync(file, 'utf8')) as Partial<ProcessMark>;
    return Number.isInteger(pid) && typeof began === 'string' ? { pid: pid!, began } : undefined;
  } catch {
    return undefined;
  }
}

/** `pid (name) state …`, the 22nd field being the start in clock ticks since boot. The name may hold anything. */
function beganOnLinux(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (state === 'Z') return undefined;
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot}:${fields[18]}`;
  } catch {
    return undefined;
  }
}

function beganElsewhere(pid: number): string | undefined {
  try {
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim() || undefined;
  } catch {
    return undefined;
  }
}
