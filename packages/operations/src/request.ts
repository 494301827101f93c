// What can be asked for: which letters of which queue are replayed or discarded. It travels through Redis, so everything in it is JSON, and it
// is checked when it comes in: an operation that fails an hour later for a misspelt field helps nobody.
import type { LetterChoice } from '@sluice/queue';
import { operationErrors } from './errors.js';

export type OperationKind = 'dead.replay' | 'dead.discard';

/** Letters by their ids, by conditions of which at least one is given, or all. */
export type OperationChoice =
  | 'all'
  | { ids: readonly string[] }
  | { fingerprint?: string; text?: string; fromMs?: number; toMs?: number };

export interface OperationRequest {
  kind: OperationKind;
  queue: string;
  choice: OperationChoice;
  /** At most this many letters per second. */
  perSecond?: number;
  /** Only letters of this tenant (`labels.tenant`), whatever the choice says. */
  tenant?: string;
  /** Who asked for it. */
  by?: string;
}

/** As it is stored: what died later than `untilMs` is not its business. */
export interface StoredRequest extends OperationRequest {
  untilMs: number;
}

const kinds: readonly OperationKind[] = ['dead.replay', 'dead.discard'];
const maxIds = 10_000;
const maxIdChars = 256;
const maxTextChars = 1_000;
const maxPerSecond = 1_000_000;
const conditions = ['fingerprint', 'text', 'fromMs', 'toMs'] as const;

/** Throws OPERATION_INVALID with the name of the field. */
export function checkRequest(request: OperationRequest): OperationRequest {
  const { kind, queue, choice, perSecond, tenant, by } = request;
  check('kind', kind, kinds.includes(kind), kinds.join(' or '));
  check('queue', queue, typeof queue === 'string' && queue !== '', 'the name of a queue');
  const isRate = perSecond === undefined || isCount(perSecond, maxPerSecond);
  check('perSecond', perSecond, isRate, `a whole number from 1 to ${maxPerSecond}`);
  for (const [field, value] of Object.entries({ tenant, by })) {
    check(field, value, value === undefined || isText(value), `a text of at most ${maxTextChars} characters`);
  }
  return {
    ...{ kind, queue, choice: checkChoice(choice) },
    ...(perSecond !== undefined && { perSecond }),
    ...(tenant !== undefined && { tenant }),
    ...(by !== undefined && { by }),
  };
}

/** The same for one that comes out of its queue, as a job of this tenant or, without one, of the installation. */
export function checkStored(stored: unknown, tenant: string | undefined): StoredRequest {
  const isObject = typeof stored === 'object' && stored !== null && !Array.isArray(stored);
  check('the operation', stored, isObject, 'an object');
  const { untilMs, ...request } = stored as StoredRequest;
  check('untilMs', untilMs, isTime(untilMs), 'a time in ms since 1970');
  const allowed = 'the tenant that the job is labelled with';
  check('tenant', request.tenant, request.tenant === tenant, allowed);
  return { ...checkRequest(request), untilMs };
}

/** As the queue wants it. */
export function letterChoice({ choice, tenant, untilMs }: StoredRequest): LetterChoice {
  const labels = tenant === undefined ? {} : { labels: { tenant } };
  if (choice === 'all') return { to: untilMs, ...labels };
  if ('ids' in choice) return { ids: choice.ids, ...labels };
  const { fingerprint, text, fromMs, toMs = Infinity } = choice;
  return {
    ...(fingerprint !== undefined && { fingerprint }),
    ...(text !== undefined && { text }),
    ...(fromMs !== undefined && { from: fromMs }),
    to: Math.min(toMs, untilMs),
    ...labels,
  };
}

function checkChoice(choice: OperationChoice): OperationChoice {
  if (choice === 'all') return choice;
  const isObject = typeof choice === 'object' && choice !== null && !Array.isArray(choice);
  check('choice', choice, isObject, `"all", { ids }, or have one of ${conditions.join(', ')}`);
  if ('ids' in choice) {
    const { ids } = choice;
    const isList = Array.isArray(ids) && ids.length >= 1 && ids.length <= maxIds;
    check('choice.ids', ids, isList && ids.every(isId), `1 to ${maxIds} ids`);
    checkNames(choice, ['ids']);
    return { ids: [...ids] };
  }
  checkNames(choice, conditions);
  const given = conditions.filter((name) => choice[name] !== undefined);
  // What has no condition is more likely a mistake than a wish to discard everything.
  check('choice', 'without a condition', given.length > 0, `"all", or have one of ${conditions.join(', ')}`);
  for (const name of ['fingerprint', 'text'] as const) {
    const value = choice[name];
    check(`choice.${name}`, value, value === undefined || isText(value), 'a text');
  }
  for (const name of ['fromMs', 'toMs'] as const) {
    const value = choice[name];
    check(`choice.${name}`, value, value === undefined || isTime(value), 'a time in ms since 1970');
  }
  return Object.fromEntries(given.map((name) => [name, choice[name]]));
}

function checkNames(choice: object, known: readonly string[]): void {
  for (const name of Object.keys(choice)) {
    check('choice', `one with "${name}"`, known.includes(name), `one with nothing but ${known.join(', ')}`);
  }
}

function check(field: string, value: unknown, isRight: boolean, allowed: string): void {
  if (!isRight) throw operationErrors.OPERATION_INVALID({ field, value, allowed });
}

function isCount(value: unknown, most: number): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= most;
}

function isTime(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '' && value.length <= maxTextChars;
}

function isId(value: unknown): boolean {
  return typeof value === 'string' && value !== '' && value.length <= maxIdChars;
}
