// Every Redis key of inspect is built here and described in docs/redis-keys.md (a test compares the two).
//
// A key is `<prefix>:{inspect}:<name>`. One hash tag for all of them: a record is written in the step that checks who may write.
// Names that end with a colon are families: the name of a series follows.

export const keyNames = {
  /** STRING: the token of the process that writes the history. */
  writer: 'writer',
  /** HASH: series → the last minute that was written. */
  rolled: 'rolled',
  /** STRING: a ring of records, one per minute of a day. */
  minutes: 'minutes:',
  /** STRING: a ring of records, one per hour of 90 days. */
  hours: 'hours:',
} as const;

export type KeyName = keyof typeof keyNames;
export type InspectKeys = Readonly<Record<KeyName, string>>;

export const defaultPrefix = 'sluice';

export function inspectKeys(prefix: string): InspectKeys {
  return Object.fromEntries(
    Object.entries(keyNames).map(([name, suffix]) => [name, `${prefix}:{inspect}:${suffix}`]),
  ) as InspectKeys;
}
