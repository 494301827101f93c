// How long it took until the jobs of a worker that died or froze were free again, and whether any worker that lived was robbed.
//
// Both are read from what was seen of the sessions in the raw keys. A session ends by being closed (its process was asked to end),
// or by a rescue, which is over when the last of its jobs has moved. The promise is lease + 1 s, counted from the death or
// the freeze; time in which nobody could rescue does not count: Redis was silent, everybody had a fresh lease after an
// outage, or no worker was well.
import type { FaultLine, GapLine, SessionLine } from './evidence.js';
import type { LedgerView } from './ledgerView.js';

const promisedMs = 1_000;
const sliceMs = 20;
/** A trouble this much shorter than a lease can already cost it: the last renewal lies up to a third of a lease back. */
const shareOfLease = 0.5;
/** A lease lost to a trouble is seen to be gone at most this long after the trouble. */
const aftermathMs = 2_500;
/** How late it may be seen that a session is gone. */
const seenLateMs = 100;
/** Until everybody has found the way back to a Redis that was away. */
const returnMs = 500;

export interface RecoveryEvidence {
  leaseMs: number;
  faults: readonly FaultLine[];
  sessions: readonly SessionLine[];
  gaps: readonly GapLine[];
  ledger: LedgerView;
}

interface Span {
  from: number;
  to: number;
}

interface Trouble extends Span {
  pid: number;
  name: string;
}

export function checkRecovery(evidence: RecoveryEvidence, object: (sentence: string) => void) {
  const { leaseMs, sessions } = evidence;
  const deaths = new Map<number, number>();
  const asked = new Map<number, number>();
  let kills = 0;
  for (const line of evidence.faults) {
    if (line.f === 'term') asked.set(line.pid, line.at);
    if (line.f !== 'death') continue;
    deaths.set(line.pid, line.at);
    if (line.how !== '0') kills++;
  }
  const troubles = troublesOf(evidence, deaths);
  const rescueMs: number[] = [];

  for (const { session, partition, pid, usedAt, bornAt, goneAt } of sessions) {
    if (goneAt === null) continue;
    const diedAt = deaths.get(pid) ?? Infinity;
    // One that woke up in time, in the grace after an outage for example, still has its session.
    const frozen = troubles.find(
      ({ pid: whose, name, from, to }) =>
        whose === pid && name === 'stop' && from >= bornAt && from < goneAt && goneAt < to,
    );
    const wasClosed = (asked.get(pid) ?? Infinity) <= goneAt && goneAt <= diedAt + seenLateMs;
    if (wasClosed) continue;
    const endedAt = Math.min(diedAt, frozen?.from ?? Infinity);
    if (endedAt <= goneAt) {
      const tookMs = goneAt - endedAt;
      const hinderedMs = hinderedWithin(evidence, troubles, deaths, { from: endedAt, to: goneAt });
      rescueMs.push(tookMs - hinderedMs);
      if (tookMs - hinderedMs > leaseMs + promisedMs) {
        const how = diedAt <= goneAt ? 'died' : 'froze';
        object(
          `session ${session} of process ${pid}, which ${how} at ${endedAt}, was rescued only ${tookMs} ms later, ` +
            `in ${hinderedMs} ms of which nobody could (promised: lease + 1 s = ${leaseMs + promisedMs} ms)`,
        );
      }
      continue;
    }
    if (usedAt === null) continue;
    // The process may know before anybody comes to rescue, and begin again.
    const successor = sessions.find(
      (other) => other.pid === pid && other.partition === partition && other.bornAt > bornAt,
    );
    const lostAt = Math.min(goneAt, successor?.bornAt ?? Infinity);
    if (!troubles.some((trouble) => excuses(trouble, pid, lostAt, leaseMs))) {
      object(
        `session ${session} of process ${pid} was taken at ${lostAt}, though the process was alive and well`,
      );
    }
  }
  const victim = evidence.faults.find((line) => line.f === 'fault' && line.name === 'encore')?.pid;
  const encore = reclaimTimes(evidence.ledger, deaths, (pid) => pid === victim);
  const victimDiedAt = deaths.get(victim ?? 0) ?? 0;
  for (const tookMs of encore) {
    const span = { from: victimDiedAt, to: victimDiedAt + tookMs };
    if (tookMs - hinderedWithin(evidence, troubles, deaths, span) > leaseMs + promisedMs)
      object(`in the encore a job was claimed again only ${tookMs} ms after its worker died`);
  }
  const again = reclaimTimes(evidence.ledger, deaths);
  return {
    kills,
    points: new Set(evidence.faults.flatMap((line) => (line.f === 'point' ? [line.point] : []))).size,
    rescues: rescueMs.length,
    rescueMaxMs: Math.max(0, ...rescueMs),
    encoreJobs: encore.length,
    encoreMaxMs: encore.at(-1) ?? 0,
    reclaimedMedianMs: again[Math.floor(again.length / 2)] ?? 0,
    reclaimedMaxMs: again.at(-1) ?? 0,
  };
}

/** A session may be lost by a process that was cut off or frozen for about a lease, or whose heartbeat was. */
function excuses(trouble: Trouble, pid: number, lostAt: number, leaseMs: number): boolean {
  if (trouble.pid !== pid || trouble.from > lostAt || trouble.to + aftermathMs < lostAt) return false;
  if (trouble.name === 'heartbeat') return true;
  const cutOff = trouble.name === 'stop' || trouble.name === 'blackhole';
  return cutOff && Math.min(trouble.to, lostAt) - trouble.from >= leaseMs * shareOfLease;
}

/** What single processes suffered: from the conductor's log, from fail points, and from jobs that block their worker. */
function troublesOf(
  { faults, leaseMs, ledger }: RecoveryEvidence,
  deaths: ReadonlyMap<number, number>,
): Trouble[] {
  const troubles: Trouble[] = [];
  for (const line of faults) {
    if (line.f === 'fault' && line.pid !== undefined) troubles.push({ ...line, pid: line.pid });
    if (line.f !== 'point') continue;
    const { at: from, pid, action } = line;
    const name = line.inThread ? 'heartbeat' : action === 'freeze' ? 'stop' : 'block';
    const blockMs = Number(action.split(' ')[1] ?? leaseMs * 3);
    troubles.push({ pid, name, from, to: Math.min(from + blockMs, deaths.get(pid) ?? Infinity) });
  }
  for (const { runs } of ledger.jobs.values()) {
    for (const { kind, pid, at: from, end } of runs) {
      if (kind !== 'blocking' && kind !== 'hanging') continue;
      troubles.push({ pid, name: 'block', from, to: end?.at ?? deaths.get(pid) ?? from });
    }
  }
  return troubles;
}

/** How much of a span passed while nobody could rescue. */
function hinderedWithin(
  { gaps, faults, sessions }: RecoveryEvidence,
  troubles: readonly Trouble[],
  deaths: ReadonlyMap<number, number>,
  { from, to }: Span,
): number {
  const covers = (span: Span, at: number) => span.from <= at && at < span.to;
  const forAll = faults.filter((line) => line.f === 'fault' && line.pid === undefined) as Span[];
  const away = [...gaps, ...forAll.map((span) => ({ from: span.from, to: span.to + returnMs }))];
  const isWell = ({ pid, usedAt, seenAt }: SessionLine, at: number) =>
    covers({ from: usedAt ?? Infinity, to: seenAt + 1 }, at) &&
    at < (deaths.get(pid) ?? Infinity) &&
    !troubles.some((trouble) => trouble.pid === pid && covers(trouble, at));
  let slices = 0;
  for (let at = from; at < to; at += sliceMs) {
    if (away.some((gap) => covers(gap, at)) || !sessions.some((session) => isWell(session, at))) slices++;
  }
  return slices * sliceMs;
}

/** From the death of a process to the next claim of each job that it was running. The token is the time of the claim in µs. */
function reclaimTimes(
  ledger: LedgerView,
  deaths: ReadonlyMap<number, number>,
  counts: (pid: number) => boolean = () => true,
): number[] {
  const times: number[] = [];
  for (const { runs } of ledger.jobs.values()) {
    for (let i = 1; i < runs.length; i++) {
      const diedAt = deaths.get(runs[i - 1]!.pid);
      if (runs[i - 1]!.end || diedAt === undefined || !counts(runs[i - 1]!.pid)) continue;
      times.push(Math.round(Number(runs[i]!.token) / 1_000) - diedAt);
    }
  }
  return times.sort((a, b) => a - b);
}
