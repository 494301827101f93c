// Who works on a queue now: the sessions that hold a lease. A worker has one session in every partition. And a wish to a worker: that
// it claim nothing more, which reaches it with the next renewal of its lease.
import { checkCount } from './options.js';
import type { Partition } from './partition.js';

const defaultSessions = 1_000;
/** What each partition may answer with at once. */
const maxSessions = 10_000;

export interface CrewMember {
  session: string;
  /** The same for all sessions of one worker. */
  id: string;
  partition: number;
  /** What the worker says about itself; empty and 0 when it cannot be read. */
  name: string;
  host: string;
  pid: number;
  concurrency: number;
  startedMs: number;
  /** How many jobs the session holds. */
  active: number;
  /** When its lease ends unless it is renewed: negative when others may rescue its jobs already. */
  leaseLeftMs: number;
  /** What became of the wish to drain its worker: `asked` until it knows, `draining` while jobs run, `drained`; null without a wish. */
  drain: DrainState | null;
}

export type DrainState = 'asked' | 'draining' | 'drained';

export interface Crew {
  members: CrewMember[];
  /** Sessions in all partitions; more than there are members when the limit cut some off. */
  total: number;
}

type CrewReply = [
  nowMs: number,
  total: number,
  ...[session: Buffer, untilMs: Buffer, description: Buffer, active: number, wish: Buffer][],
];

/** Sessions whose leases end first come first: those that may be in trouble. The limit holds for each partition. */
export async function readCrew(
  partitions: readonly Partition[],
  limit: number = defaultSessions,
): Promise<Crew> {
  checkCount('limit', limit, maxSessions);
  const replies = await Promise.all(partitions.map((partition) => partition.run('crew', { limit })));
  const crew: Crew = { members: [], total: 0 };
  for (const [partition, reply] of replies.entries()) {
    const [nowMs, total, ...found] = reply as CrewReply;
    crew.total += total;
    for (const [session, untilMs, description, active, wish] of found) {
      const leaseLeftMs = Number(untilMs) - nowMs;
      crew.members.push({
        session: session.toString(),
        partition,
        ...readDescription(description.toString()),
        active,
        leaseLeftMs,
        drain: (wish.toString() || null) as DrainState | null,
      });
    }
  }
  return crew;
}

/**
 * The worker that has this session, in all partitions. The wish is stored once per session, so repeating it changes nothing; it ends with the
 * session, but a worker that knows of it takes it along when a lease that it lost is replaced.
 */
export async function drainWorker(
  partitions: readonly Partition[],
  session: string,
  wished: boolean,
): Promise<DrainState | 'working' | null> {
  const ask = async (partition: Partition, named: { session: string; worker: string }) =>
    ((await partition.run('drain', { ...named, wished: wished ? '1' : '0' })) as Buffer[]).map(String);
  for (const partition of partitions) {
    const [worker, state] = await ask(partition, { session, worker: '' });
    if (worker === undefined) continue;
    const others = partitions.filter((other) => other !== partition);
    if (worker !== '') await Promise.all(others.map((other) => ask(other, { session: '', worker })));
    return ((state ?? '') || 'working') as DrainState | 'working';
  }
  return null;
}

type Description = Pick<CrewMember, 'id' | 'name' | 'host' | 'pid' | 'concurrency' | 'startedMs'>;

function readDescription(text: string): Description {
  const nothing = { id: '', name: '', host: '', pid: 0, concurrency: 0, startedMs: 0 };
  try {
    return { ...nothing, ...(JSON.parse(text) as Partial<Description>) };
  } catch {
    return nothing;
  }
}
