// What the API answers, as far as the page reads it. Everything that comes from users is text or `unknown`, and is shown as text.

export type JobState = 'waiting' | 'delayed' | 'blocked' | 'active' | 'done' | 'dead' | 'cancelled';
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

export interface Problem {
  code: string;
  message: string;
  sinceMs: number;
  queue?: string;
  of?: 'cache';
}

export interface Percentiles {
  p50: number;
  p95: number;
  p99: number;
}

export interface Counts {
  waiting: number;
  delayed: number;
  blocked: number;
  active: number;
  dead: number;
  done: number;
}

export interface QueueCounts extends Counts {
  workers: number;
  oldestWaitingMs: number;
  nextDueMs?: number;
  byPriority: number[];
}

export interface Rates {
  added: number;
  done: number;
  failed: number;
  died: number;
  cancelled: number;
}

export interface QueueRow {
  name: string;
  counts: QueueCounts;
  paused: boolean;
  rates: Rates | null;
  minute: {
    minuteMs: number;
    done: number;
    dead: number;
    failed: number;
    cancelled: number;
    waitMs: Percentiles | null;
    runMs: Percentiles | null;
  };
  problem?: Problem;
}

export interface RateLimit {
  max: number;
  perMs: number;
}

export interface Rules {
  paused?: boolean | null;
  maxActive?: number | null;
  rate?: RateLimit | null;
  perGroup?: { maxActive?: number | null; rate?: RateLimit | null };
  events?: number | null;
}

export interface LetterGroup {
  fingerprint: string;
  title: string;
  count: number;
  firstMs: number;
  lastMs: number;
}

export interface DeadGroup extends LetterGroup {
  queue: string;
  /** How many died per hour of the last day, the oldest hour first. */
  perHour?: number[];
}

export interface DeadSummary {
  queue: string;
  letters: number;
  averageAttempts: number | null;
  sampled: number;
  topError: LetterGroup | null;
}

export interface QueueDetail extends QueueRow {
  partitions: number;
  rules: Rules;
  dead: DeadSummary;
}

export interface RedisHealth {
  version: string;
  masters: number;
  usedBytes: number;
  rssBytes: number;
  maxBytes: number;
  policy: string;
  fragmentation: number;
  opsPerSecond: number;
  clients: number;
  blockedClients: number;
  keys: number;
  evicted: number;
  expired: number;
  hits: number;
  misses: number;
  uptimeSeconds: number;
  aof: { enabled: boolean; bytes: number; lastWriteOk: boolean; rewriting: boolean; delayedFsyncs: number };
}

export interface CacheFamily {
  family: string;
  hitRate?: number;
  averageLoadMs?: number;
  averageRemainingTtlMs?: number;
  nearHits: number;
  redisHits: number;
  staleServed: number;
  misses: number;
  loads: number;
  loadErrors: number;
  invalidations: number;
  processes: number;
  openBreakers: number;
  rates: { reads: number; hits: number; loads: number } | null;
}

export interface CacheAnswer {
  families: CacheFamily[];
  total: CacheFamily;
  processes: {
    id: string;
    name?: string;
    host?: string;
    pid?: number;
    ageMs: number;
    isAlive: boolean;
    breaker?: string;
  }[];
  problem?: Problem;
}

export interface Attention {
  code: string;
  message: string;
  queue?: string;
}

export interface Overview {
  atMs: number;
  queues: QueueRow[];
  workers: number;
  counts: Counts;
  rates: Rates | null;
  oldestWaitingMs: number;
  redis: RedisHealth | null;
  cache: CacheFamily | null;
  dead: {
    letters: number;
    averageAttempts: number | null;
    topError: { queue: string; title: string; fingerprint: string; count: number } | null;
    queues: DeadSummary[];
  };
  retries: { count: number; complete: boolean; nextMs: number | null };
  uploads: { open: number };
  outbox: { waiting: number; oldestMs: number };
  attention: Attention[];
  problems: Problem[];
}

export interface SeriesPoint {
  atMs: number;
  figures: Partial<Record<string, number>> | null;
}

export interface Series {
  step: 'minute' | 'hour';
  stepMs: number;
  points: SeriesPoint[];
  complete: boolean;
}

export interface JobRow {
  queue: string;
  id: string;
  state: JobState;
  createdMs?: number;
  attempt?: number;
  priority?: number;
  group?: string;
  labels: Record<string, string>;
  atMs?: number;
  preview?: string;
  error?: string;
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

export interface RetryRow {
  queue: string;
  id: string;
  dueMs: number;
  attempt?: number;
  error?: string;
  preview?: string;
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

export interface Operation {
  id: string;
  kind: string;
  queue: string;
  state: 'waiting' | 'running' | 'done' | 'cancelled' | 'failed';
  stopping: boolean;
  progress: { moved: number; total?: number };
  by?: string;
  createdMs: number;
  error: { message: string } | null;
}

export interface WorkerRow {
  queue: string;
  session: string;
  name: string;
  host: string;
  pid: number;
  concurrency: number;
  startedMs: number;
  sessions: number;
  active: number;
  leaseLeftMs: number;
  drain: 'asked' | 'draining' | 'drained' | null;
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
    live: Record<string, unknown> | null;
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
