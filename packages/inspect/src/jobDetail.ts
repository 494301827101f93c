// Everything about one job: what the books say, what happened to it when, and the chain that it is part of.
import { labelMatcher, readEventsOf, readRules } from '@sluice/queue';
import type { AnyQueue, JobEvents, JobRef, JobState, JobView } from '@sluice/queue';

/** Jobs of a chain that are shown; a larger one is cut, and the answer says so. */
const maxChainJobs = 50;

export interface TimelineEntry {
  atMs: number;
  what: 'added' | 'claimed' | 'failed' | 'died' | 'replayed' | 'done' | 'cancelled' | 'due';
  attempt?: number;
  /** How an attempt ended: error, timeout, crash, … */
  kind?: string;
  message?: string;
  worker?: string;
}

export interface ChainJob extends JobRef {
  /** Undefined when nobody knows it any more, or its queue is not one of these. */
  state: JobState | undefined;
  waitsFor: JobRef[];
}

export interface JobDetail extends JobView {
  queue: string;
  /** What is known. That somebody claimed it before, and when it was done, only the event stream says, where it is kept. */
  timeline: TimelineEntry[];
  /** How many entries of the event stream were looked at, and whether that was all of it; null when no stream is kept. */
  events: { scanned: number; complete: boolean } | null;
  /** The job itself and all that wait for it or that it waits for, directly or not; empty for a job on its own. */
  chain: { jobs: ChainJob[]; complete: boolean };
}

export async function describeJob(
  queue: AnyQueue,
  id: string,
  labels: Readonly<Record<string, string>> | undefined,
  queueNamed: (name: string) => Promise<AnyQueue | undefined>,
): Promise<JobDetail | null> {
  const view = await queue.job(id);
  if (!view || !labelMatcher(labels)(view.labels)) return null;
  const [letter, rules, chain] = await Promise.all([
    view.state === 'dead' ? queue.dead.get(id) : null,
    readRules(queue),
    chainAround({ queue: queue.name, id }, queueNamed),
  ]);
  const heard = typeof rules.events === 'number' ? await readEventsOf(queue, id) : null;
  return {
    ...view,
    queue: queue.name,
    timeline: timelineOf(view, letter?.lastFailureMs, heard?.events ?? []),
    events: heard && { scanned: heard.scanned, complete: heard.complete },
    chain,
  };
}

/** What the books say themselves is not taken from the stream: they say more of it. */
const onlyHeard = ['claimed', 'replayed', 'done', 'cancelled'] as const;
/** The token of a claim is its time in microseconds, or a little more. */
const tokenUnitsPerMs = 1_000;
const sameClaimMs = 1_000;

/** In the order in which it happened, also within a millisecond: a job is added, then claimed, then fails. */
function timelineOf(view: JobView, diedMs: number | undefined, heard: JobEvents['events']): TimelineEntry[] {
  const entries: TimelineEntry[] = [];
  if (view.createdMs !== undefined) entries.push({ atMs: view.createdMs, what: 'added' });
  for (const { type, atMs } of heard) {
    const what = onlyHeard.find((known) => known === type);
    if (what) entries.push({ atMs, what });
  }
  if (view.token !== undefined) {
    const atMs = Math.floor(Number(view.token) / tokenUnitsPerMs);
    const isKnown = entries.some(
      (entry) => entry.what === 'claimed' && Math.abs(entry.atMs - atMs) < sameClaimMs,
    );
    if (!isKnown) entries.push({ atMs, what: 'claimed' });
  }
  for (const { atMs, attempt, kind, name, message, worker } of view.attempts) {
    entries.push({ atMs, what: 'failed', attempt, kind, message: `${name}: ${message}`, worker });
  }
  if (diedMs !== undefined) entries.push({ atMs: diedMs, what: 'died' });
  if (view.dueMs !== undefined) entries.push({ atMs: view.dueMs, what: 'due' });
  return entries.sort((a, b) => a.atMs - b.atMs);
}

async function chainAround(
  start: JobRef,
  queueNamed: (name: string) => Promise<AnyQueue | undefined>,
): Promise<JobDetail['chain']> {
  const found = new Map<string, ChainJob>();
  const open: JobRef[] = [start];
  let complete = true;
  for (let ref = open.shift(); ref; ref = open.shift()) {
    if (found.has(nameOf(ref))) continue;
    if (found.size >= maxChainJobs) {
      complete = false;
      break;
    }
    const { job, neighbours } = await lookAround(ref, await queueNamed(ref.queue));
    found.set(nameOf(ref), job);
    open.push(...neighbours);
  }
  return { jobs: found.size > 1 ? [...found.values()] : [], complete };
}

async function lookAround(
  { queue: name, id }: JobRef,
  queue: AnyQueue | undefined,
): Promise<{ job: ChainJob; neighbours: JobRef[] }> {
  const [view, dependents] = queue ? await Promise.all([queue.job(id), queue.dependents(id)]) : [null, []];
  const waitsFor = view?.waitsFor ?? [];
  return { job: { queue: name, id, state: view?.state, waitsFor }, neighbours: [...waitsFor, ...dependents] };
}

function nameOf({ queue, id }: JobRef): string {
  return `${queue}/${id}`;
}
