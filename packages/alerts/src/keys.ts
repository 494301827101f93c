// Every Redis key of alerts is built here and described in docs/redis-keys.md (a test compares the two). A key is
// `<prefix>:{alerts}:<name>`; one hash tag, because one script checks who may write, and writes.

export const keyNames = {
  /** STRING: the token of the process that judges. */
  judge: 'judge',
  /** HASH: name of a threshold → JSON of how it stands. */
  standings: 'standings',
} as const;

export const defaultPrefix = 'sluice';

export function alertKeys(prefix: string): Readonly<Record<keyof typeof keyNames, string>> {
  const base = `${prefix}:{alerts}:`;
  return { judge: base + keyNames.judge, standings: base + keyNames.standings };
}
