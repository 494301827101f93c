// What the server answers, as far as more than one command reads it. Fields that a server may leave out are optional here: an older or
// newer one must not break a table.

export interface Rates {
  added: number;
  done: number;
  failed: number;
  died: number;
  cancelled: number;
}

export interface QueueReply {
  name: string;
  counts: {
    waiting: number;
    delayed: number;
    blocked: number;
    active: number;
    dead: number;
    done: number;
    workers: number;
    oldestWaitingMs: number;
    nextDueMs?: number;
  };
  paused: boolean;
  rates: Rates | null;
  problem?: { code: string; message: string; sinceMs: number };
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
  queue: string;
  fingerprint: string;
  title: string;
  count: number;
  firstMs: number;
  lastMs: number;
}

export interface RedisReply {
  version: string;
  nowMs: number;
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

export interface Attempt {
  attempt: number;
  kind: string;
  name: string;
  message: string;
  worker?: string;
  atMs: number;
}

export interface ErrorReply {
  name: string;
  message: string;
  stack?: string;
}
