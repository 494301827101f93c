/**
 * What became of a job's earlier attempts.
 *
 * Only jobs that failed have a history. It is a Redis list of JSON strings, oldest first, which a script
 * appends to; this file says how one record is written and read, and which records are kept: the first,
 * because it shows how the trouble began, and the last 19, because they show how it is now. A record's
 * texts are cut to the sizes of an error description, so that a history is bounded however often a job
 * fails: at most 20 records of about 6.5 KiB before JSON escapes.
 *
 * A record is written as a JSON array rather than an object: the names of the fields would otherwise be
 * stored with every attempt of every dead job.
 */

import { clipUtf8, MAX_MESSAGE_BYTES, MAX_NAME_BYTES, MAX_STACK_BYTES } from './fingerprint.js';

/** How an attempt ended: see `attemptKinds`. */
export type AttemptKind = (typeof attemptKinds)[number];

export const attemptKinds = [
  'error', // the handler threw
  'timeout', // the handler ran longer than its time
  'crash', // the worker or the child process died, or lost its lease
  'cancelled', // somebody cancelled the job while it ran
  'gave-up', // the handler said that retrying is no use
  'invalid', // the payload is malformed or does not fit its schema
  'unreadable', // not an ending: the record itself could not be read; its text is the message
] as const;

export interface AttemptRecord {
  /** 1 for the first run. */
  attempt: number;
  atMs: number;
  worker: string;
  kind: AttemptKind;
  name: string;
  message: string;
  stack: string;
}

/** The first record and the last 19. */
export const MAX_HISTORY_RECORDS = 20;

/** Both histories in order of time, each record once, bounded. Appending is merging with a history of one. */
export function mergeHistories(
  history: readonly AttemptRecord[],
  more: readonly AttemptRecord[],
): AttemptRecord[] {
  const unique = new Map([...history, ...more].map((record) => [encodeAttempt(record), record]));
  const ordered = [...unique.values()].sort((a, b) => a.attempt - b.attempt || a.atMs - b.atMs);
  return boundHistory(ordered);
}

export function boundHistory<T>(oldestFirst: readonly T[]): T[] {
  if (oldestFirst.length <= MAX_HISTORY_RECORDS) return [...oldestFirst];
  return [...oldestFirst.slice(0, 1), ...oldestFirst.slice(1 - MAX_HISTORY_RECORDS)];
}

export function encodeAttempt(record: AttemptRecord): string {
  return JSON.stringify([
    record.attempt,
    record.atMs,
    record.kind,
    clipUtf8(record.worker, MAX_NAME_BYTES),
    clipUtf8(record.name, MAX_NAME_BYTES),
    clipUtf8(record.message, MAX_MESSAGE_BYTES),
    clipUtf8(record.stack, MAX_STACK_BYTES),
  ]);
}

/** Never throws: one damaged record must not hide the others, nor the job they belong to. */
export function decodeAttempt(text: string): AttemptRecord {
  return parseAttempt(text) ?? unreadable(text);
}

function parseAttempt(text: string): AttemptRecord | undefined {
  let fields: unknown;
  try {
    fields = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!Array.isArray(fields)) return undefined;
  const [attempt, atMs, kind, ...texts] = fields as unknown[];
  if (!Number.isSafeInteger(attempt) || !Number.isSafeInteger(atMs) || !isKind(kind)) return undefined;
  if (texts.length !== 4 || !texts.every((field) => typeof field === 'string')) return undefined;
  const [worker, name, message, stack] = texts as [string, string, string, string];
  return { attempt: attempt as number, atMs: atMs as number, kind, worker, name, message, stack };
}

function isKind(value: unknown): value is AttemptKind {
  return (attemptKinds as readonly unknown[]).includes(value);
}

function unreadable(text: string): AttemptRecord {
  const message = clipUtf8(text, MAX_MESSAGE_BYTES);
  return { attempt: 0, atMs: 0, worker: '', kind: 'unreadable', name: 'unreadable', message, stack: '' };
}
