// The work of a run: what jobs there are, and what the handler does with each kind. Before it returns, the handler writes its effect
// to the ledger, under the job's idempotency key and with the token of its claim; its result carries the token too, so that
// the books tell which claim's outcome they accepted.
import { setTimeout as sleep } from 'node:timers/promises';
import { GiveUp, Snooze } from '@sluice/queue';
import type { AddOptions, Job } from '@sluice/queue';
import type { Journal, LedgerLine } from './evidence.js';
import type { Random } from '@sluice/testbed/random';

export type Kind =
  | 'quick' // done after a few ms
  | 'failing' // fails once or twice first
  | 'dying' // fails as often as it may
  | 'hopeless' // gives up at once
  | 'snoozing' // comes too early, and says so
  | 'long' // runs longer than a lease
  | 'slow' // is slow in its first run only
  | 'blocking' // keeps the event loop busy for longer than a lease
  | 'hanging' // keeps it busy for longer than its own timeout, in its first run
  | 'poison' // kills its worker
  | 'tick'; // made by a schedule

export interface Work {
  /** The idempotency key. A job of a schedule has none of its own: its id serves. */
  key: string;
  kind: Kind;
  ms: number;
}

/** The shares of a workload. Kinds that cost a worker or seconds are rare. */
const shares: [Kind, number][] = [
  ['quick', 1_000],
  ['failing', 60],
  ['dying', 12],
  ['hopeless', 6],
  ['snoozing', 30],
  ['long', 6],
  ['slow', 20],
  ['blocking', 0.3],
  ['hanging', 0.6],
  ['poison', 0.2],
];

export interface Draw {
  work: Work;
  options: AddOptions;
  /** See ProducerLine. */
  remembered: boolean;
}

export interface Mix {
  /** Only these kinds; empty for all. */
  kinds: Kind[];
  /** Plain jobs only: nothing but a payload. */
  plain: boolean;
  /** They take no time and all have the same priority, so that they are stored, claimed and ended together. */
  swift: boolean;
  leaseMs: number;
}

/** Draws a job. `owned` are ids of earlier jobs that are remembered and may be waited for. */
export function drawJob(
  random: Random,
  key: string,
  mix: Mix,
  owned: readonly string[],
  queue: string,
): Draw {
  const kind = drawKind(random, mix.kinds);
  const work: Work = { key, kind, ms: mix.swift ? 0 : drawMs(random, kind, mix.leaseMs) };
  const options: AddOptions = {};
  if (kind === 'failing')
    Object.assign(options, { attempts: 4, backoff: { type: 'fixed', delayMs: random.pick([0, 0, 20]) } });
  if (kind === 'dying') Object.assign(options, { attempts: 2, backoff: { type: 'fixed', delayMs: 20 } });
  if (kind === 'hanging')
    Object.assign(options, { timeoutMs: 1_000, backoff: { type: 'fixed', delayMs: 50 } });
  if (!mix.swift && random.chance(0.2))
    options.priority = random.between(0, 5) as NonNullable<AddOptions['priority']>;
  if (mix.plain || random.chance(0.5)) return { work, options, remembered: false };
  const shape = random.pick(['kept', 'owned', 'grouped', 'delayed', 'unique', 'window', 'after'] as const);
  if (shape === 'kept') options.keepResultMs = 3_600_000;
  if (shape === 'owned') options.id = key;
  if (shape === 'grouped') options.group = `group-${random.between(1, 8)}`;
  if (shape === 'delayed') options.delayMs = random.between(1, 1_500);
  if (shape === 'unique') options.unique = `unique-${random.between(1, 20)}`;
  if (shape === 'window') options.unique = { key: `window-${random.between(1, 200)}`, windowMs: 5_000 };
  if (shape === 'after' && owned.length > 0) {
    options.id = key;
    options.after = [{ queue, id: random.pick(owned) }];
    options.onDependencyFailure = random.pick(['cancel', 'run']);
  }
  return { work, options, remembered: options.id !== undefined || options.keepResultMs !== undefined };
}

function drawKind(random: Random, kinds: readonly Kind[]): Kind {
  const allowed = kinds.length > 0 ? shares.filter(([kind]) => kinds.includes(kind)) : shares;
  let at = random.next() * allowed.reduce((sum, [, share]) => sum + share, 0);
  for (const [kind, share] of allowed) {
    at -= share;
    if (at < 0) return kind;
  }
  return allowed[0]![0];
}

function drawMs(random: Random, kind: Kind, leaseMs: number): number {
  if (kind === 'long') return random.between(leaseMs, leaseMs * 1.5);
  if (kind === 'slow') return random.between(200, 600);
  if (kind === 'blocking') return leaseMs + 500;
  if (kind === 'hanging') return 60_000;
  if (kind === 'snoozing') return random.between(50, 300);
  return random.chance(0.5) ? 0 : random.between(1, 15);
}

/** The handler of every worker. */
export function handlerFor(ledger: Journal<LedgerLine>) {
  return async (job: Job<Work>): Promise<{ token: string; key: string }> => {
    const { kind, ms } = job.data;
    const key = kind === 'tick' ? job.id : job.data.key;
    const { id, token, attempt, crashes } = job;
    const write = (e: LedgerLine['e']) =>
      ledger.write({ e, at: Date.now(), id, key, token, pid: process.pid, kind, attempt, crashes });
    write('run');
    switch (kind) {
      case 'failing':
      case 'dying':
        if (kind === 'dying' || attempt <= 1 + (ms % 2)) {
          write('failed');
          throw new Error(`planned failure of token ${token}`);
        }
        break;
      case 'hopeless':
        write('gave-up');
        throw new GiveUp(`planned end of token ${token}`);
      case 'snoozing':
        if (Date.now() < job.createdMs + ms) {
          write('snoozed');
          throw new Snooze(40);
        }
        break;
      case 'slow':
        // A slow job that was rescued is quick, so that hundreds of them do not run alone for minutes.
        if (crashes === 0) await sleep(ms);
        break;
      case 'blocking':
        if (crashes === 0) block(ms);
        break;
      case 'hanging':
        if (attempt === 1) block(ms);
        break;
      case 'poison':
        write('poison');
        process.kill(process.pid, 'SIGKILL');
        break;
      case 'quick':
      case 'long':
      case 'tick':
        if (ms > 0) await sleep(ms);
    }
    // Some handlers report; what they report belongs to whoever holds the job.
    if (ms % 5 === 4) await job.progress({ done: ms }).catch(() => {});
    if (ms % 7 === 6) await job.log(`token ${token}`).catch(() => {});
    write('effect');
    return { token, key };
  };
}

/** Holds the event loop like a busy loop does, but leaves the core to others. */
export function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
