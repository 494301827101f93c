// Every Redis key of operations is built here and described in docs/redis-keys.md (a test compares the two).
//
// A key is `<prefix>:{operations}:<name>`. One hash tag for all of them: an operation is written down and listed in one step.

export const keyNames = {
  /** ZSET: operation → when it was started. */
  list: 'list',
  /** HASH: what is known about one operation. */
  record: 'record:',
} as const;

export type OperationKeys = Readonly<Record<keyof typeof keyNames, string>>;

export const defaultPrefix = 'sluice';

/** Of one operation; without an id, the list is what counts. */
export function operationKeys(prefix: string, id = ''): OperationKeys {
  const base = `${prefix}:{operations}:`;
  return { list: base + keyNames.list, record: base + keyNames.record + id };
}
