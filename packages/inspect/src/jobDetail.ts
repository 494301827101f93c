// Everything about one job: what the books say, what happened to it when, and the chain that it is part of.
import type { AnyQueue, JobRef, JobState, JobView } from '@sluice/queue';

/** Jobs of a chain that are shown; a larger one is cut, and the answer says so. */
const maxChainJobs = 50;

export interface TimelineEntry {
  atMs: number;
  what: 'added' | 'failed' | 'died' | 'due';
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
  timeline: TimelineEntry[];
  /** The job itself and all that wait for it or that it waits for, directly or not; empty for a job on its own. */
  chain: { jobs: ChainJob[]; complete: boolean };
}

export async function describeJob(
  queue: AnyQueue,
  id: string,
  queueNamed: (name: string) => Promise<AnyQueue | undefined>,
): Promise<JobDetail | null> {
  const view = await queue.job(id);
  if (!view) return null;
  const letter = view.state === 'dead' ? await queue.dead.get(id) : null;
  const chain = await chainAround({ queue: queue.name, id }, queueNamed);
  return { ...view, queue: queue.name, timeline: timelineOf(view, letter?.lastFailureMs), chain };
}

function timelineOf(view: JobView, diedMs: number | undefined): TimelineEntry[] {
  const entries: TimelineEntry[] = [];
  if (view.createdMs !== undefined) entries.push({ atMs: view.createdMs, what: 'added' });
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
