// Every Redis key of a queue is built here and described in docs/redis-keys.md (a test compares the two).
//
// A key is `<prefix>:{<queue>:<partition>}:<name>`. The braces are the hash tag: all keys of a partition live in one
// cluster slot, so that one script can move a job between them. Names that end with a colon are families: the script
// appends a session, an id, a group or a minute.

export const keyNames = {
  cfg: 'cfg',
  jobs: 'jobs',
  /** The family; take.lua is given one of the six lists below under this name. */
  wait: 'wait:',
  wait0: 'wait:0',
  wait1: 'wait:1',
  wait2: 'wait:2',
  wait3: 'wait:3',
  wait4: 'wait:4',
  wait5: 'wait:5',
  delayed: 'delayed',
  suspects: 'suspects',
  inbox: 'inbox',
  wake: 'wake',
  sessions: 'sessions',
  rescuing: 'rescuing',
  active: 'active:',
  lanes: 'lanes:',
  producer: 'producer:',
  unique: 'unique:',
  groups: 'groups',
  group: 'group:',
  fresh: 'fresh',
  ring: 'ring',
  groupActive: 'group-active',
  groupRate: 'group-rate:',
  parked: 'parked',
  rate: 'rate',
  blocked: 'blocked',
  deps: 'deps:',
  dependents: 'dependents',
  chained: 'chained',
  chains: 'chains',
  chainsDue: 'chains-due',
  ended: 'ended',
  results: 'results',
  progress: 'progress',
  logs: 'logs:',
  tries: 'tries:',
  dead: 'dead',
  deadInfo: 'dead-info',
  deadGroups: 'dead-groups',
  deadGroup: 'dead-group:',
  deadTitles: 'dead-titles',
  replays: 'replays',
  schedules: 'schedules',
  ticks: 'ticks',
  stats: 'stats:',
  events: 'events',
} as const;

/** Keys of the whole installation, `<prefix>:<name>`: in a slot of their own, whichever queue is meant. */
export const sharedKeyNames = {
  queues: 'queues',
} as const;

export type SharedKeys = Readonly<Record<keyof typeof sharedKeyNames, string>>;

export type KeyName = keyof typeof keyNames;
export type PartitionKeys = Readonly<Record<KeyName, string>>;

export const defaultPrefix = 'sluice';

export function partitionKeys(prefix: string, queue: string, partition: number): PartitionKeys {
  const base = `${prefix}:{${queue}:${partition}}:`;
  return Object.fromEntries(
    Object.entries(keyNames).map(([name, suffix]) => [name, base + suffix]),
  ) as PartitionKeys;
}

export function sharedKeys(prefix: string): SharedKeys {
  return { queues: `${prefix}:${sharedKeyNames.queues}` };
}
