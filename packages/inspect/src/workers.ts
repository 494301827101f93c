// Who works. A worker has a session in each partition of its queue; here it is one row again.
import type { AnyQueue, CrewMember, DrainState } from '@sluice/queue';
import type { Page } from './page.js';

export interface WorkerRow {
  queue: string;
  /** One of its sessions, by which it can be drained. */
  session: string;
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
  /** Whether an operator drains it, and how far that is; null when nobody does. */
  drain: DrainState | null;
}

/** A worker is as far as the session that is least far. */
const drainOrder: readonly (DrainState | null)[] = ['asked', 'draining', 'drained', null];

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
  const { session, id, name, host, pid, concurrency, startedMs, active, leaseLeftMs, drain } = member;
  const key = JSON.stringify(id === '' ? [queue, name, host, pid] : [queue, id]);
  const row = rows.get(key);
  if (!row) {
    const about = { queue, session, name, host, pid, concurrency, startedMs };
    rows.set(key, { ...about, sessions: 1, active, leaseLeftMs, drain });
    return;
  }
  row.sessions++;
  row.active += active;
  row.startedMs = Math.min(row.startedMs, startedMs);
  row.leaseLeftMs = Math.min(row.leaseLeftMs, leaseLeftMs);
  if (drainOrder.indexOf(drain) < drainOrder.indexOf(row.drain)) row.drain = drain;
}
