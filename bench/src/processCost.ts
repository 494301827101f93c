/*
 * What a process costs, as the kernel counts it: processor time and resident memory, from /proc.
 */
import { readFile } from 'node:fs/promises';

/** The kernel counts processor time for user space in hundredths of a second, on every Linux. */
const TICKS_PER_SECOND = 100;
/** Counted from the field after the name, which is field 3 of /proc/<pid>/stat: user time is 14, system time 15. */
const USER_TICKS = 11;
const SYSTEM_TICKS = 12;

/** User and system time of all threads since the processes began. */
export async function cpuSeconds(pids: readonly number[]): Promise<number> {
  let ticks = 0;
  for (const pid of pids) {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    // The name stands in parentheses and may contain anything; numbers begin after the last one.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    ticks += Number(fields[USER_TICKS]) + Number(fields[SYSTEM_TICKS]);
  }
  return ticks / TICKS_PER_SECOND;
}

export async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1_024;
}
