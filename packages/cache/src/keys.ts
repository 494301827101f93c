// Every Redis key of the cache is built here and described in docs/redis-keys.md (a test compares the two).
//
// A value has a name, `user:7` or `graph:job1:c0ffee`: the name of its family and the parts of its key. A group has a name of the
// same kind. The whole name is the hash tag, so that a value and its lease share a cluster slot, and values spread over all slots.
// What kind of key it is stands in front, so that one prefix covers all keys of a kind: values and generations are watched for
// changes, others are not.
import { cacheErrors } from './errors.js';

export const keyNames = {
  /** STRING: the envelope with the value. */
  value: 'value:{',
  /** STRING: the token of whoever loads the value. */
  lease: 'lease:{',
  /** STRING: the generation of a group. */
  generation: 'generation:{',
  /** SET: generations of a group that have an index. */
  indexes: 'indexes:{',
  /** ZSET: names of the values that carry a generation, by when they expire. */
  members: 'members:{',
  /** HASH: process → what it has counted. */
  statistics: 'statistics:{processes}',
  /** ZSET: process, by when it told last. */
  published: 'published:{processes}',
} as const;

export type KeyKind = keyof typeof keyNames;

export const defaultPrefix = 'sluice';
/** A longer name is a mistake: hash what is long. */
export const maxNameLength = 1_024;

/** A part of a name. Whatever it contains, two different lists of parts never make the same name. */
export type Part = string | number | bigint | boolean;

const familyName = /^[a-z0-9][a-z0-9_-]*(:[a-z0-9][a-z0-9_-]*)*$/i;
// What has a meaning in names (`:` and `%`), in hash tags (braces), and what nobody wants to see in a key.
const needsEscape = /[%:{}\s\p{Cc}\p{Cs}]/u;
const escaped = /[%:{}\s\p{Cc}\p{Cs}]/gu;

export function checkFamilyName(name: string): void {
  if (!familyName.test(name)) throw cacheErrors.NAME_INVALID({ name });
}

/** `user` and 7 make `user:7`. */
export function nameOf(family: string, parts: Part | readonly Part[]): string {
  if (typeof parts === 'number') return `${family}:${parts}`;
  if (typeof parts !== 'object') return limited(`${family}:${escape(parts)}`);
  let name = family;
  for (const part of parts) name += `:${escape(part)}`;
  return limited(name);
}

function escape(part: Part): string {
  // All that has no id would be one and the same value.
  if (part === undefined || part === null || typeof part === 'object')
    throw cacheErrors.KEY_INVALID({ part });
  const text = typeof part === 'string' ? part : String(part);
  return needsEscape.test(text) ? text.replaceAll(escaped, escapeSign) : text;
}

/** Half of a surrogate pair has no bytes of its own: written as it is, two different names would become one key. */
function escapeSign(sign: string): string {
  const code = sign.charCodeAt(0);
  return code >= 0xd800 && code <= 0xdfff ? `%u${code.toString(16)}` : encodeURIComponent(sign);
}

function limited(name: string): string {
  if (name.length > maxNameLength) throw cacheErrors.NAME_TOO_LONG({ name, length: name.length });
  return name;
}

/** The keys under one prefix. */
export class KeySpace {
  readonly #value: string;
  readonly #lease: string;
  readonly #generation: string;
  readonly #indexes: string;
  readonly #members: string;
  readonly statistics: string;
  readonly published: string;

  constructor(prefix: string) {
    const of = (kind: KeyKind) => `${prefix}:cache:${keyNames[kind]}`;
    [this.#value, this.#lease, this.#generation] = [of('value'), of('lease'), of('generation')];
    [this.#indexes, this.#members] = [of('indexes'), of('members')];
    [this.statistics, this.published] = [of('statistics'), of('published')];
  }

  value(name: string): string {
    return `${this.#value}${name}}`;
  }

  lease(name: string): string {
    return `${this.#lease}${name}}`;
  }

  generation(group: string): string {
    return `${this.#generation}${group}}`;
  }

  indexes(group: string): string {
    return `${this.#indexes}${group}}`;
  }

  members(group: string, generation: string): string {
    return `${this.#members}${group}}.${generation}`;
  }

  /** Beginnings of the keys whose changes matter to copies in memory. */
  get watched(): string[] {
    return [this.#value, this.#generation];
  }

  /** What a watched key stands for. */
  parse(key: string): { kind: 'value' | 'generation'; name: string } | undefined {
    if (key.startsWith(this.#value)) return { kind: 'value', name: key.slice(this.#value.length, -1) };
    if (key.startsWith(this.#generation)) {
      return { kind: 'generation', name: key.slice(this.#generation.length, -1) };
    }
    return undefined;
  }
}
