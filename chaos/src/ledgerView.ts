// The ledger, read as the outside world would apply it: in the order of its lines, refusing an effect whose token is smaller than one
// already seen for its job, and applying each idempotency key once.
import type { LedgerLine } from './evidence.js';

export interface RunView {
  token: string;
  pid: number;
  at: number;
  attempt: number;
  crashes: number;
  kind: LedgerLine['kind'];
  /** What came of it, and when; undefined when its process was gone before it could say. */
  end: { e: LedgerLine['e']; at: number } | undefined;
}

export interface JobView {
  id: string;
  key: string;
  /** By token, the newest last. */
  runs: RunView[];
}

export interface LedgerView {
  jobs: Map<string, JobView>;
  idsByKey: Map<string, Set<string>>;
  /** How often the effect under a key was applied: by the rules above at most once. */
  applied: Map<string, number>;
  staleEffects: number;
  repeatedEffects: number;
  /** Runs that share a token: a claim was given twice. */
  sharedTokens: string[];
}

export function viewLedger(lines: readonly LedgerLine[]): LedgerView {
  const jobs = new Map<string, JobView>();
  const idsByKey = new Map<string, Set<string>>();
  const applied = new Map<string, number>();
  const newestToken = new Map<string, number>();
  const sharedTokens: string[] = [];
  let staleEffects = 0;
  let repeatedEffects = 0;
  for (const line of lines) {
    const { e, id, key, token, pid, at, attempt, crashes, kind } = line;
    let job = jobs.get(id);
    if (!job) jobs.set(id, (job = { id, key, runs: [] }));
    idsByKey.set(key, (idsByKey.get(key) ?? new Set()).add(id));
    const run = job.runs.find((other) => other.token === token);
    if (e === 'run') {
      if (run) sharedTokens.push(`${id} with token ${token} in processes ${run.pid} and ${pid}`);
      job.runs.push({ token, pid, at, attempt, crashes, kind, end: undefined });
    } else if (run) {
      run.end = { e, at };
    }
    const stale = Number(token) < (newestToken.get(id) ?? 0);
    if (!stale) newestToken.set(id, Number(token));
    if (e !== 'effect') continue;
    if (stale) staleEffects++;
    else if (applied.has(key)) repeatedEffects++;
    else applied.set(key, 1);
  }
  for (const job of jobs.values()) job.runs.sort((a, b) => Number(a.token) - Number(b.token));
  return { jobs, idsByKey, applied, staleEffects, repeatedEffects, sharedTokens };
}

export function newestToken(job: JobView | undefined): string | undefined {
  return job?.runs.at(-1)?.token;
}
