/** One text for one value: the names of objects in order, no spaces. What means the same has the same digest. */
export type JsonValue = string | number | boolean | null | JsonValue[] | JsonObject;
export interface JsonObject {
  [name: string]: JsonValue;
}

/** Deeper is no message but an attack on whoever walks through it. */
const DEEPEST = 32;

export function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`;
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`);
  return `{${members.join()}}`;
}

/** Why a value that somebody sent cannot be kept as JSON; undefined if it can. */
export function problemOf(value: unknown, depth = 0): string | undefined {
  if (depth > DEEPEST) return `it has more than ${DEEPEST} levels`;
  if (typeof value === 'number' && !Number.isFinite(value)) return 'it has a number that is too large';
  if (typeof value === 'string') return problemOfText(value);
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [name, member] of Object.entries(value)) {
    const problem = problemOfText(name) ?? problemOf(member, depth + 1);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function problemOfText(text: string): string | undefined {
  if (text.includes('\0')) return 'it contains a zero character';
  return /\p{Surrogate}/u.test(text) ? 'it is not valid Unicode' : undefined;
}
