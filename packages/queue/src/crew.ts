// Who works on a queue now: the sessions that hold a lease. A worker has one session in every partition.
import { checkCount } from './options.js';
import type { Partition } from './partition.js';

const defaultSessions = 1_000;
/** What each partition may answer with at once. */
const maxSessions = 10_000;

export interface CrewMember {
  session: string;
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
}

export interface Crew {
  members: CrewMember[];
  /** Sessions in all partitions; more than there are members when the limit cut some off. */
  total: number;
}

type CrewReply = [
  nowMs: number,
  total: number,
  ...[session: Buffer, untilMs: Buffer, description: Buffer, active: number][],
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
    for (const [session, untilMs, description, active] of found) {
      const leaseLeftMs = Number(untilMs) - nowMs;
      crew.members.push({
        session: session.toString(),
        partition,
        ...readDescription(description.toString()),
        active,
        leaseLeftMs,
      });
    }
  }
  return crew;
}

type Description = Pick<CrewMember, 'name' | 'host' | 'pid' | 'concurrency' | 'startedMs'>;

function readDescription(text: string): Description {
  const nothing = { name: '', host: '', pid: 0, concurrency: 0, startedMs: 0 };
  try {
    return { ...nothing, ...(JSON.parse(text) as Partial<Description>) };
  } catch {
    return nothing;
  }
}
