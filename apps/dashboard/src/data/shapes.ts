// What the API answers, as far as the page reads it. An answer that has a type where it is made is that type, or a part of it, so that a
// field which is renamed there does not compile here; only types are taken, nothing of these packages reaches a browser. The others are
// written down as they arrive. Everything that comes from users is text or `unknown`, and is shown as text.
import type {
  Attention as WholeAttention,
  Overview as WholeOverview,
  QueueRow as WholeRow,
} from '@sluice/control';
import type {
  CacheFamilyRow,
  CacheSnapshot,
  QueueDetail as WholeQueue,
  QueueSnapshot,
  RedisHealth as WholeRedis,
} from '@sluice/inspect';
import type { JobState } from '@sluice/queue';

export type { DeadGroup, JobRow, Problem, RetryRow, Series, WorkerRow } from '@sluice/inspect';
export type { Operation } from '@sluice/operations';
export type { JobState, Rules } from '@sluice/queue';

export type Role = 'viewer' | 'operator' | 'admin';

export interface Session {
  tenant: string;
  installation: boolean;
  role: Role;
  key: { id: string; name: string } | null;
  via: 'key' | 'session' | 'token' | 'open';
  csrf: string | null;
  expiresAt: string | null;
}

export interface Page<Item> {
  items: Item[];
  next: string | null;
  scanned?: number;
  complete?: boolean;
}

export interface QueueRow extends Pick<
  WholeRow,
  'name' | 'paused' | 'rates' | 'minute' | 'problem' | 'reserved'
> {
  counts: Omit<QueueSnapshot['counts'], 'inbox' | 'tombstones'>;
}

export interface QueueDetail extends QueueRow, Pick<WholeQueue, 'partitions' | 'rules' | 'dead'> {}

export type RedisHealth = Omit<WholeRedis, 'nowMs'>;

export type CacheFamily = Pick<
  CacheFamilyRow,
  | 'family'
  | 'hitRate'
  | 'hitGoal'
  | 'averageLoadMs'
  | 'averageRemainingTtlMs'
  | 'nearHits'
  | 'redisHits'
  | 'staleServed'
  | 'misses'
  | 'loads'
  | 'loadErrors'
  | 'invalidations'
  | 'processes'
  | 'openBreakers'
  | 'rates'
>;

export interface CacheAnswer extends Pick<CacheSnapshot, 'processes' | 'problem'> {
  families: CacheFamily[];
  total: CacheFamily;
}

/** Of a target that came later, the unit may be another than those that are known here. */
export interface Attention extends Omit<WholeAttention, 'target'> {
  target?: Pick<AlertRow, 'name' | 'about' | 'keep' | 'limit' | 'unit' | 'value' | 'link'>;
}

export interface Overview extends Omit<WholeOverview, 'queues' | 'redis' | 'cache' | 'cost' | 'attention'> {
  attention: Attention[];
  queues: QueueRow[];
  redis: RedisHealth | null;
  cache: CacheFamily | null;
}

export interface Attempt {
  attempt: number;
  atMs: number;
  worker: string;
  kind: string;
  name: string;
  message: string;
  stack: string;
}

export interface JobRef {
  queue: string;
  id: string;
}

export interface JobDetail {
  queue: string;
  id: string;
  state: JobState;
  /** Absent where none was kept: once the job has ended. */
  data?: unknown;
  /** Instead of data, when it is binary. */
  base64?: string;
  bytes?: number;
  attempt?: number;
  crashes?: number;
  priority?: number;
  createdMs?: number;
  dueMs?: number;
  session?: string;
  progress?: unknown;
  result?: unknown;
  error?: { name: string; message: string; stack: string };
  attempts: Attempt[];
  logs: string[];
  labels: Record<string, string>;
  group?: string;
  timeline: {
    atMs: number;
    what: string;
    attempt?: number;
    kind?: string;
    message?: string;
    worker?: string;
  }[];
  chain: { jobs: (JobRef & { state?: JobState; waitsFor: JobRef[] })[]; complete: boolean };
}

export interface DeadLetter {
  id: string;
  title: string;
  fingerprint: string;
  attemptCount: number;
  firstFailureMs: number;
  lastFailureMs: number;
  createdMs: number;
  data?: unknown;
  error: { name: string; message: string; stack: string };
  labels: Record<string, string>;
}

export interface ScheduleRow {
  queue: string;
  name: string;
  when: { cron?: string; timeZone?: string; everyMs?: number; anchorMs?: number };
  data: unknown;
  missed: string;
  nextMs: number | null;
}

export interface UploadRow {
  id: string;
  tenant: string;
  owner: string | null;
  nodeId: string;
  drive: string;
  path: string;
  state: string;
  size: number | null;
  receivedBytes: number;
  storedBytes: number;
  missing: unknown;
  createdAt: string;
  updatedAt: string;
}

export interface Drive {
  id: string;
  name: string;
  bucket: string;
  prefix: string;
  createdAt?: string;
}

export interface FileNode {
  id: string;
  driveId: string;
  parentId: string | null;
  name: string;
  path: string;
  type: 'FILE' | 'FOLDER';
  status: string;
  size?: number | null;
  contentType?: string | null;
  sha256?: string | null;
  createdAt: string;
  updatedAt: string;
}

export interface EventRow {
  cursor: string;
  eventId: string;
  topic: string;
  key: string;
  data: Record<string, unknown>;
}

export interface Trace {
  id: string;
  kind: 'upload' | 'node' | 'event' | 'job';
  upload: {
    /** While it is under way. */
    live: Omit<UploadRow, 'tenant' | 'owner'> | null;
    record: {
      id: string;
      nodeId: string;
      path: string;
      status: string;
      reason: string | null;
      createdAt: string;
      endedAt: string | null;
    } | null;
  } | null;
  node: FileNode | null;
  events: EventRow[];
  waitingEvents: number;
  jobs: {
    queue: string;
    id: string;
    state: JobState;
    createdMs?: number;
    attempt?: number;
    progress?: unknown;
    result?: unknown;
    error?: string;
  }[];
  bounds: { events: { scanned: number; complete: boolean }; jobs: { scanned: number; complete: boolean } };
}

export interface AuditRow {
  id?: string;
  at: string;
  endedAt: string | null;
  action: string;
  actor?: string | null;
  actorName?: string | null;
  target?: string | null;
  tenant?: string | null;
  outcome: string | null;
  requestId?: string | null;
  details?: Record<string, unknown> | null;
}

export interface KeyRow {
  id: string;
  tenant: string;
  role: Role;
  name: string;
  createdAt: string;
  expiresAt: string | null;
  revokedAt: string | null;
  usedAt: string | null;
  oldUntil: string | null;
}

export interface Webhook {
  id: string;
  /** `*`: told of everything in the installation, and of alerts. */
  tenant?: string;
  url: string;
  topics?: string[];
  active?: boolean;
  /** How many sign now: two while one replaces another. */
  secrets?: number;
  createdAt?: string;
}

export interface Delivery {
  id: string;
  topic?: string;
  state?: string;
  attempt?: number;
  status?: number | null;
  error?: string | null;
  at?: string;
}

/** A threshold that the server watches: what is measured, what it should be, what it is. */
export interface AlertRow {
  name: string;
  about: string;
  keep: 'below' | 'above';
  limit: number;
  unit: string;
  /** Null while it is not known. */
  value: number | null;
  met: boolean | null;
  state: string;
  since: string | null;
  raisedAt: string | null;
  link: string;
}
