// What a caller may say about a job, checked once at the edge: a wrong option is refused with its name, and nothing changes.
import { checkBackoff } from './backoff.js';
import type { ExponentialBackoff, FixedBackoff } from './backoff.js';
import { queueErrors } from './errors.js';
import { flag, maxOptionsBytes } from './packed.js';
import type { StoredOptions } from './packed.js';

export type Priority = 0 | 1 | 2 | 3 | 4 | 5;
export const defaultPriority: Priority = 3;
export const defaultRememberMs = 3_600_000;
/** A time beyond this is a mistake of units. */
const farthestMs = 10 * 366 * 86_400_000;

/** What happens to a job when one that it waits for dies or is cancelled. */
export type FailurePolicy = 'cancel' | 'run' | 'wait';

export interface JobRef {
  queue: string;
  id: string;
}

export interface Durability {
  /** Wait until this many replicas have the job (WAIT). */
  replicas?: number;
  /** Wait until the job is on disk here and on this many replicas (WAITAOF, Redis 7.2). */
  fsync?: boolean;
  /** How long to wait for the copies. */
  timeoutMs?: number;
}

export interface AddOptions {
  /** An id of your own. A second add with it, also up to `rememberMs` after the job ended, changes nothing. */
  id?: string;
  /** How long an own id is remembered after the job ended: 1 h by default. */
  rememberMs?: number;
  delayMs?: number;
  runAt?: Date | number;
  /** 0 is the most urgent, 5 the least; 3 by default. */
  priority?: Priority;
  /** One job at a time with this key; with a window, one job per window. */
  unique?: string | { key: string; windowMs: number };
  /** Jobs of one group take turns with those of other groups; limits per key count per group. */
  group?: string;
  attempts?: number;
  backoff?: FixedBackoff | ExponentialBackoff;
  timeoutMs?: number;
  /** How long the result stays readable. */
  keepResultMs?: number;
  /** Waits for these jobs, which may be in other queues. */
  after?: JobRef[];
  onDependencyFailure?: FailurePolicy;
  /** Labels such as tenant and owner, shown to handlers and operators. */
  labels?: Record<string, string>;
  durability?: Durability;
  /** From an ADD_UNKNOWN error: repeats that very call. */
  requestId?: string;
}

/** The options in the form that is stored. */
export interface PreparedOptions {
  plain: boolean;
  flags: number;
  priority: Priority;
  json: string;
  ownId: string | undefined;
  delayMs: number | undefined;
  runAtMs: number | undefined;
  uniqueKey: string;
  uniqueWindowMs: number | undefined;
  group: string | undefined;
}

const plainByPriority: PreparedOptions[] = [0, 1, 2, 3, 4, 5].map((priority) => ({
  plain: true,
  flags: 0,
  priority: priority as Priority,
  json: '',
  ownId: undefined,
  delayMs: undefined,
  runAtMs: undefined,
  uniqueKey: '',
  uniqueWindowMs: undefined,
  group: undefined,
}));

/** Of a job that is added without any. */
export const plainOptions = plainByPriority[defaultPriority]!;

export function prepareOptions(
  options: AddOptions | undefined,
  trace?: Record<string, string>,
): PreparedOptions {
  if (!options && !trace) return plainOptions;
  const given = options ?? {};
  const priority = given.priority ?? defaultPriority;
  check(
    'priority',
    priority,
    Number.isInteger(priority) && priority >= 0 && priority <= 5,
    'an integer from 0 to 5',
  );
  const stored = storedOptions(given, trace);
  const json = Object.keys(stored).length > 0 ? JSON.stringify(stored) : '';
  check(
    'labels',
    'too long',
    Buffer.byteLength(json) <= maxOptionsBytes,
    `at most ${maxOptionsBytes} bytes of options in all`,
  );
  const delayed = given.delayMs !== undefined || given.runAt !== undefined;
  const special = delayed || json !== '' || given.after !== undefined || given.requestId !== undefined;
  if (!special) return plainByPriority[priority]!;
  const settles =
    stored.w !== undefined || stored.u !== undefined || stored.k !== undefined || stored.g !== undefined;
  const unique = typeof given.unique === 'string' ? { key: given.unique, windowMs: undefined } : given.unique;
  return {
    plain: false,
    flags: (settles ? flag.settles : 0) | (stored.g === undefined ? 0 : flag.grouped),
    priority,
    json,
    ownId: given.id,
    delayMs: given.delayMs,
    runAtMs: given.runAt === undefined ? undefined : Number(given.runAt),
    uniqueKey: unique?.key ?? '',
    uniqueWindowMs: unique?.windowMs,
    group: given.group,
  };
}

function storedOptions(given: AddOptions, trace: Record<string, string> | undefined): StoredOptions {
  const stored: StoredOptions = {};
  if (given.id !== undefined) {
    checkName('id', given.id);
    check('id', given.id, !/^[#=]/.test(given.id), 'a text that does not start with # or =');
    stored.w = given.rememberMs ?? defaultRememberMs;
    checkMs('rememberMs', stored.w);
  }
  if (given.delayMs !== undefined) {
    checkMs('delayMs', given.delayMs);
    check('runAt', given.runAt, given.runAt === undefined, 'absent when delayMs is given');
  }
  if (given.runAt !== undefined) {
    const at = Number(given.runAt);
    check(
      'runAt',
      given.runAt,
      Number.isFinite(at) && at >= 0 && at < Date.now() + farthestMs,
      'a valid date',
    );
  }
  if (given.group !== undefined) {
    checkName('group', given.group);
    stored.g = given.group;
  }
  if (given.unique !== undefined) {
    stored.u = typeof given.unique === 'string' ? given.unique : given.unique.key;
    checkName('unique', stored.u);
    if (typeof given.unique !== 'string') {
      stored.uw = given.unique.windowMs;
      check(
        'unique.windowMs',
        stored.uw,
        Number.isInteger(stored.uw) && stored.uw > 0 && stored.uw < farthestMs,
        'a positive number of ms',
      );
    }
  }
  if (given.attempts !== undefined) {
    check(
      'attempts',
      given.attempts,
      Number.isInteger(given.attempts) && given.attempts >= 1 && given.attempts <= 255,
      '1 to 255',
    );
    stored.a = given.attempts;
  }
  if (given.backoff !== undefined) {
    checkBackoff(given.backoff);
    stored.b = given.backoff;
  }
  if (given.timeoutMs !== undefined) {
    checkMs('timeoutMs', given.timeoutMs);
    stored.t = given.timeoutMs;
  }
  if (given.keepResultMs !== undefined) {
    checkMs('keepResultMs', given.keepResultMs);
    if (given.keepResultMs > 0) stored.k = given.keepResultMs;
  }
  if (given.labels !== undefined) stored.m = given.labels;
  if (trace) stored.tr = trace;
  return stored;
}

export function checkMs(option: string, value: number): void {
  check(
    option,
    value,
    Number.isInteger(value) && value >= 0 && value < farthestMs,
    'a whole number of milliseconds, at most ten years',
  );
}

export function checkCount(option: string, value: number, most: number): void {
  check(
    option,
    value,
    Number.isInteger(value) && value >= 1 && value <= most,
    `a whole number from 1 to ${most}`,
  );
}

/** Ids, groups and unique keys become parts of Redis keys and of messages: short, and without control characters. */
export function checkName(option: string, value: string): void {
  const fine =
    typeof value === 'string' &&
    value.length > 0 &&
    Buffer.byteLength(value) <= 256 &&
    // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
    !/[\u0000-\u001f\u007f]/.test(value);
  check(option, value, fine, 'a text of 1 to 256 bytes without control characters');
}

function check(option: string, value: unknown, fine: boolean, allowed: string): void {
  if (!fine) throw queueErrors.OPTION_INVALID({ option, value, allowed });
}
