// What a run leaves behind, and all that its checker may read: append-only files of JSON lines, written by whoever saw something
// happen, and the raw keys of Redis at the end. A line is one write to a file opened for appending, which a kill -9 does not tear
// and which needs no fsync: the machine itself does not crash here. Times are ms of the one clock that all processes share.
import { closeSync, openSync, readFileSync, readdirSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Kind } from './work.js';

/** A producer's log. An intent comes before its add; what was accepted has an answer from Redis. */
export type ProducerLine =
  | {
      e: 'intent';
      at: number;
      key: string;
      kind: Kind;
      /** The books remember how it ended: it has an own id or keeps its result. */
      remembered: boolean;
      /** Ids of the jobs that it waits for. */
      after?: string[];
    }
  | { e: 'accepted'; at: number; key: string; id: string; ours: boolean }
  /** No answer came. The producer repeats the call under its request id, or under the job's own id. */
  | { e: 'unknown'; at: number; key: string; code: string; id?: string; requestId?: string }
  | { e: 'refused'; at: number; key: string; code: string }
  /** A foreign message that is not JSON was pushed. */
  | { e: 'malformed'; at: number; text: string; answered: boolean };

/** The ledger of effects. `run` is written when a handler starts; then what came of it, right before it says so. */
export interface LedgerLine {
  e: 'run' | 'effect' | 'failed' | 'gave-up' | 'snoozed' | 'poison';
  at: number;
  id: string;
  /** The idempotency key. */
  key: string;
  /** As issued with the claim: also the time of the claim in µs. */
  token: string;
  pid: number;
  kind: Kind;
  attempt: number;
  crashes: number;
}

export type OperatorLine =
  | { e: 'cancelling'; at: number; id: string }
  | { e: 'cancelled'; at: number; id: string; was: string | null }
  | { e: 'replaying' | 'replayed'; at: number; operation: string }
  | { e: 'scheduled' | 'unscheduled'; at: number; name: string; everyMs: number };

export type FaultLine =
  | { f: 'birth'; at: number; pid: number; name: string; role: string }
  /** The process was asked to end in good order. */
  | { f: 'term'; at: number; pid: number; name: string }
  | { f: 'death'; at: number; pid: number; name: string; how: string }
  /** A fail point fired. */
  | { f: 'point'; at: number; pid: number; point: string; action: string; inThread: boolean }
  /** Something was broken from then to then, for one process or for all. */
  | { f: 'fault'; name: string; from: number; to: number; pid?: number };

/** A worker session as it was seen in the raw keys. */
export interface SessionLine {
  session: string;
  partition: number;
  pid: number;
  /** When it first claimed, or tried to. A session whose opening was never answered is left behind unused. */
  usedAt: number | null;
  /** First and last seen, and first seen to be gone. */
  bornAt: number;
  seenAt: number;
  goneAt: number | null;
}

/** Redis could not be asked, or every session had a fresh lease after an outage. */
export interface GapLine {
  g: 'silence' | 'grace';
  from: number;
  to: number;
}

export const files = {
  ledger: 'ledger.jsonl',
  faults: 'faults.jsonl',
  sessions: 'sessions.jsonl',
  gaps: 'gaps.jsonl',
  books: 'books.json',
  producer: (name: string) => `accepted-${name}.jsonl`,
  operator: 'operator.jsonl',
  log: (name: string) => `log-${name}.txt`,
};

export class Journal<Line extends object> {
  readonly #file: number;

  constructor(path: string) {
    this.#file = openSync(path, 'a');
  }

  write(line: Line): void {
    writeSync(this.#file, `${JSON.stringify(line)}\n`);
  }

  close(): void {
    closeSync(this.#file);
  }
}

/** Reads what was added to a file since the last time. */
export class JournalReader<Line> {
  readonly #path: string;
  #offset = 0;

  constructor(path: string) {
    this.#path = path;
  }

  read(): Line[] {
    let bytes: Buffer;
    try {
      bytes = readFileSync(this.#path);
    } catch {
      return [];
    }
    const end = bytes.lastIndexOf(10) + 1;
    const lines = bytes.toString('utf8', this.#offset, end).split('\n');
    this.#offset = end;
    return lines.filter(Boolean).map((line) => JSON.parse(line) as Line);
  }
}

export function readJournal<Line>(folder: string, name: string): Line[] {
  return new JournalReader<Line>(join(folder, name)).read();
}

/** The lines of all producers, those that were killed included. */
export function readProducers(folder: string): ProducerLine[] {
  const names = readdirSync(folder).filter((name) => name.startsWith('accepted-'));
  return names.flatMap((name) => readJournal<ProducerLine>(folder, name));
}
