/**
 * What a caller may attach to a node, and the other text that goes into a record. Everything is bounded, and nothing
 * in it can break a header, a log line or an object's prototype.
 */
import { recordsErrors } from './errors.js';

export const MAX_METADATA_ENTRIES = 64;
export const MAX_METADATA_KEY_BYTES = 128;
export const MAX_METADATA_VALUE_BYTES = 2_048;
/** Longer than any id, key, type or digest that this system makes. */
export const MAX_TEXT_BYTES = 1_024;
const MAX_REASON_CHARACTERS = 500;
const FORBIDDEN_KEYS = new Set(['__proto__', 'constructor', 'prototype']);

export type Metadata = Readonly<Record<string, string>>;

/** Returns a copy without a prototype, or throws METADATA_INVALID with the reason. */
export function checkMetadata(metadata: Metadata | undefined): Metadata {
  const kept = Object.create(null) as Record<string, string>;
  if (metadata === undefined) return kept;
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata))
    refuse('it is no object of strings');
  const entries = Object.entries(metadata as Record<string, unknown>);
  if (entries.length > MAX_METADATA_ENTRIES)
    refuse(`it has ${entries.length} entries, at most ${MAX_METADATA_ENTRIES} are allowed`);
  for (const [key, value] of entries) {
    const shown = JSON.stringify(key.slice(0, MAX_METADATA_KEY_BYTES));
    if (FORBIDDEN_KEYS.has(key)) refuse(`the key ${shown} is not allowed`);
    if (key === '') refuse('a key is empty');
    if (typeof value !== 'string') refuse(`the value of ${shown} is no string`);
    const wrong = wrongWith(key, MAX_METADATA_KEY_BYTES);
    if (wrong) refuse(`the key ${shown} ${wrong}`);
    const wrongValue = wrongWith(value, MAX_METADATA_VALUE_BYTES);
    if (wrongValue) refuse(`the value of ${shown} ${wrongValue}`);
    kept[key] = value;
  }
  return kept;
}

/** Any other text of a record: an id, a tenant, a content type, a digest. */
export function checkText(field: string, value: string, maxBytes = MAX_TEXT_BYTES): string {
  if (typeof value !== 'string') throw recordsErrors.VALUE_INVALID({ field, reason: 'it is no string' });
  if (value === '') throw recordsErrors.VALUE_INVALID({ field, reason: 'it is empty' });
  const wrong = wrongWith(value, maxBytes);
  if (wrong) throw recordsErrors.VALUE_INVALID({ field, reason: `it ${wrong}` });
  return value;
}

export function checkOptionalText(field: string, value: string | undefined): string | undefined {
  return value === undefined ? undefined : checkText(field, value);
}

/** A count of bytes, a fence, a limit: a whole number that is exact in JavaScript. */
export function checkCount(field: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw recordsErrors.VALUE_INVALID({ field, reason: `${String(value)} is no whole number from 0` });
}

export function checkOptionalCount(field: string, value: number | undefined): number | undefined {
  return value === undefined ? undefined : checkCount(field, value);
}

const UUID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i;

/** Whether a text can be the id of a node, or of a drive, at all; PostgreSQL would complain of anything else. */
export function isNodeId(id: string): boolean {
  return typeof id === 'string' && UUID.test(id);
}

/** Why something ended. It may come from anywhere, and ending must not fail because of it: it is cleaned, not refused. */
export function cleanReason(reason: string): string {
  return reason
    .replace(/\p{Surrogate}/gu, '\uFFFD')
    .replace(/\p{Control}+/gu, ' ')
    .slice(0, MAX_REASON_CHARACTERS)
    .replace(/\p{Surrogate}/gu, '');
}

function wrongWith(text: string, maxBytes: number): string | undefined {
  if (text.length > maxBytes || Buffer.byteLength(text) > maxBytes) return `has more than ${maxBytes} bytes`;
  if (/\p{Surrogate}/u.test(text)) return 'is not valid Unicode';
  if (/\p{Control}/u.test(text)) return 'contains a control character';
  return undefined;
}

function refuse(reason: string): never {
  throw recordsErrors.METADATA_INVALID({ reason });
}
