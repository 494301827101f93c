// Who works. A worker has a session in each partition of its queue; here it is one row again.
import type { AnyQueue, CrewMember } from '@sluice/queue';
import type { Page } from './page.js';

export interface WorkerRow {
  queue: string;
  name: string;
  host: string;
  pid: number;
  concurrency: number;
  startedMs: number;
  sessions: number;
  /** Jobs that it holds, those that it claimed ahead included. */
  active: number;
  /** Of the session whose lease ends first; negative when its jobs may be rescued. */
  leaseLeftMs: number;
}

export async function findWorkers(queues: readonly AnyQueue[]): Promise<Page<WorkerRow>> {
  const crews = await Promise.all(
    queues.map(async (queue) => ({ queue: queue.name, crew: await queue.crew() })),
  );
  const rows = new Map<string, WorkerRow>();
  for (const { queue, crew } of crews) for (const member of crew.members) gather(rows, queue, member);
  const scanned = crews.reduce((sum, { crew }) => sum + crew.members.length, 0);
  const total = crews.reduce((sum, { crew }) => sum + crew.total, 0);
  return { items: [...rows.values()], scanned, complete: scanned === total, cursor: null };
}

function gather(rows: Map<string, WorkerRow>, queue: string, member: CrewMember): void {
  const { name, host, pid, concurrency, startedMs, active, leaseLeftMs } = member;
  const key = JSON.stringify([queue, name, host, pid]);
  const row = rows.get(key);
  if (!row) {
    rows.set(key, { queue, name, host, pid, concurrency, startedMs, sessions: 1, active, leaseLeftMs });
    return;
  }
  row.sessions++;
  row.active += active;
  row.startedMs = Math.min(row.startedMs, startedMs);
  row.leaseLeftMs = Math.min(row.leaseLeftMs, leaseLeftMs);
}
