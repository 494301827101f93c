/** What a stand-in for the server answers: an empty installation, a busy one, a broken one. All figures are made up, and hostile texts are among them. */
import type {
  AlertRow,
  CacheFamily,
  DeadGroup,
  DeadLetter,
  JobDetail,
  JobRow,
  Overview,
  QueueRow,
  Series,
  WorkerRow,
} from '../src/data/shapes.js';

export type SceneName = 'empty' | 'busy' | 'broken';

/** Would run, if anything of a payload were ever taken for markup. */
export const hostile = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>';

const names = ['document', 'audio', 'video', 'graph', 'mail', 'thumbnails', 'webhooks', hostile];

export function overviewOf(scene: SceneName, nowMs: number): Overview {
  const queues = scene === 'empty' ? [] : names.map((name, i) => queueOf(name, i, scene, nowMs));
  const sum = (pick: (queue: QueueRow) => number): number =>
    queues.reduce((total, queue) => total + pick(queue), 0);
  const dead = sum(({ counts }) => counts.dead);
  return {
    atMs: nowMs,
    queues,
    workers: sum(({ counts }) => counts.workers),
    counts: {
      waiting: sum(({ counts }) => counts.waiting),
      delayed: sum(({ counts }) => counts.delayed),
      blocked: 0,
      active: sum(({ counts }) => counts.active),
      dead,
      done: 0,
    },
    rates:
      scene === 'empty'
        ? { added: 0, done: 0, failed: 0, died: 0, cancelled: 0 }
        : { added: 131.2, done: 128.4, failed: 2.3, died: 0.2, cancelled: 0 },
    oldestWaitingMs: scene === 'broken' ? 26 * 60_000 : scene === 'busy' ? 41_000 : 0,
    redis: {
      version: '7.0.15',
      masters: 1,
      usedBytes: scene === 'broken' ? 498 * 1_048_576 : 125 * 1_048_576,
      rssBytes: 141 * 1_048_576,
      maxBytes: 512 * 1_048_576,
      policy: scene === 'broken' ? 'allkeys-lru' : 'noeviction',
      fragmentation: 1.13,
      opsPerSecond: scene === 'empty' ? 3 : 1_234,
      clients: 45,
      blockedClients: 12,
      keys: 12_450,
      evicted: scene === 'broken' ? 311 : 0,
      expired: 90_233,
      hits: 1,
      misses: 1,
      uptimeSeconds: 360_412,
      aof: {
        enabled: true,
        bytes: 73_400_320,
        lastWriteOk: scene !== 'broken',
        rewriting: false,
        delayedFsyncs: 0,
      },
    },
    cache: scene === 'empty' ? null : familyOf('*', 0.88, 43_454),
    dead: {
      letters: dead,
      averageAttempts: dead > 0 ? 3.4 : null,
      topError: dead > 0 ? { queue: 'document', title: causes[0]!, fingerprint: 'f0', count: 12 } : null,
      queues: queues
        .filter(({ counts }) => counts.dead > 0)
        .map(({ name, counts }, i) => ({
          queue: name,
          letters: counts.dead,
          averageAttempts: 3 + (i % 3) * 0.4,
          sampled: counts.dead,
          topError: groupOf(i, name, nowMs),
        })),
      queueCount: queues.filter(({ counts }) => counts.dead > 0).length,
    },
    retries: retriesOf(queues),
    uploads: { open: scene === 'empty' ? 0 : 3 },
    outbox: { waiting: scene === 'broken' ? 1_204 : 0, oldestMs: scene === 'broken' ? 190_000 : 0 },
    attention: attentionOf(scene, queues),
    problems:
      scene === 'broken'
        ? [
            {
              code: 'REDIS_DOWN',
              message: 'Redis does not answer: connect ECONNREFUSED 127.0.0.1:6379',
              sinceMs: nowMs - 42_000,
            },
          ]
        : [],
  };
}

/** The delayed jobs of a scene are all retries. */
function retriesOf(queues: readonly QueueRow[]): Overview['retries'] {
  const waiting = queues
    .filter(({ counts }) => counts.delayed > 0)
    .map(({ name, counts }) => ({
      ...{ queue: name, count: counts.delayed, complete: true, nextMs: counts.nextDueMs! },
    }))
    .sort((a, b) => a.nextMs - b.nextMs);
  return {
    count: waiting.reduce((sum, { count }) => sum + count, 0),
    complete: true,
    nextMs: waiting[0]?.nextMs ?? null,
    queues: waiting,
  };
}

function attentionOf(scene: SceneName, queues: QueueRow[]): Overview['attention'] {
  if (scene === 'empty') return [];
  const dead = queues
    .filter(({ counts }) => counts.dead > 0)
    .map(({ name, counts }) => ({
      code: 'DEAD_LETTERS',
      message: counts.dead === 1 ? '1 dead letter' : `${counts.dead.toLocaleString('en-US')} dead letters`,
      queue: name,
    }));
  const paused = { code: 'QUEUE_PAUSED', message: 'paused: no job is started', queue: 'mail' };
  const missed = alertsOf(scene)
    .items.filter(({ met }) => met === false)
    .map(({ state, ...target }) => ({
      code: state === 'raised' ? 'ALERT_RAISED' : 'TARGET_MISSED',
      message: `${target.name} is ${target.value}, should be ${target.keep} ${target.limit}`,
      target,
    }));
  if (scene === 'busy') return [...dead.slice(0, 3), paused, ...missed];
  return [
    { code: 'REDIS_CANNOT_WRITE', message: 'Redis could not write its append-only file' },
    { code: 'REDIS_EVICTS', message: 'Redis has thrown keys away; jobs may be among them' },
    { code: 'NO_WORKERS', message: '1,204,331 jobs wait and nobody works', queue: 'document' },
    { code: 'JOBS_FAIL', message: '1,204 of 1,225 attempts failed just now', queue: 'audio' },
    { code: 'LONG_WAIT', message: 'its oldest job waits for minutes', queue: 'video' },
    { code: hostile, message: hostile },
    ...dead,
    paused,
    ...missed,
  ];
}

function queueOf(name: string, i: number, scene: SceneName, nowMs: number): QueueRow {
  const isBroken = scene === 'broken';
  const dead = [12, 3, 1, 7, 2, 0, 0, 0][i]! * (isBroken ? 941 : 1);
  return {
    name,
    paused: name === 'mail',
    reserved: name === 'webhooks',
    counts: {
      waiting: isBroken && i === 0 ? 1_204_331 : [213, 44, 8, 91, 1_020, 0, 3, 0][i]!,
      delayed: [3, 3, 0, 3, 0, 0, 0, 0][i]!,
      blocked: 0,
      active: isBroken ? 0 : [16, 8, 4, 6, 0, 2, 1, 0][i]!,
      dead,
      done: 0,
      workers: isBroken && i === 0 ? 0 : [4, 2, 2, 2, 1, 1, 1, 1][i]!,
      oldestWaitingMs: [41_000, 12_000, 3_000, 26_000, 380_000, 0, 900, 0][i]! * (isBroken ? 38 : 1),
      ...(i < 4 && { nextDueMs: nowMs + [150_000, 315_000, 620_000, 105_000][i]! }),
      byPriority: [0, 0, 0, 0, 0, 0],
    },
    rates: {
      added: 12.4,
      done: [61.2, 20.1, 3.4, 40, 0, 2.6, 0.9, 0][i]!,
      failed: 0.4,
      died: 0.02,
      cancelled: 0,
    },
    minute: {
      minuteMs: nowMs,
      done: 1_204,
      dead: 1,
      failed: 21,
      cancelled: 0,
      waitMs: { p50: 12, p95: 480, p99: 1_900 },
      runMs: { p50: 40 + i * 30, p95: 210 * (i + 1), p99: 3_100 },
    },
  };
}

const causes = [
  'StorageTimeout: no answer from storage within <n> ms',
  'FfmpegError: moov atom not found',
  'RangeError: invalid array length',
  'Neo4jError: the transaction timed out',
  `TypeError: ${hostile}`,
];

function groupOf(i: number, queue: string, nowMs: number): DeadGroup {
  return {
    queue,
    fingerprint: `f${i}`,
    title: causes[i % causes.length]!,
    count: [12, 3, 1, 7, 2][i % 5]!,
    firstMs: nowMs - 86_400_000 * (i + 0.4),
    lastMs: nowMs - 90_000 * (i + 1),
    perHour: Array.from({ length: 24 }, (_, hour) =>
      Math.max(0, Math.round(4 * Math.sin(hour / (2 + i)) + i)),
    ),
  };
}

export function groupsOf(
  scene: SceneName,
  nowMs: number,
): { items: DeadGroup[]; letters: number; complete: boolean } {
  const items = scene === 'empty' ? [] : causes.map((_, i) => groupOf(i, names[i]!, nowMs));
  return { items, letters: items.reduce((sum, { count }) => sum + count, 0), complete: true };
}

function familyOf(
  family: string,
  hitRate: number,
  reads: number,
  hitGoal: number | null = null,
): CacheFamily {
  const hits = Math.round(reads * hitRate);
  return {
    ...{ family, hitRate, hitGoal },
    averageLoadMs: reads === 0 ? 0 : 48,
    averageRemainingTtlMs: family.startsWith('job') ? 4_000 : 850_000,
    nearHits: Math.round(hits * 0.4),
    redisHits: Math.round(hits * 0.6),
    staleServed: 0,
    misses: reads - hits,
    loads: Math.round((reads - hits) * 0.7),
    loadErrors: family === 'graph' ? 3 : 0,
    invalidations: 12,
    processes: 3,
    openBreakers: 0,
    rates: { reads: reads / 90, hits: hits / 90, loads: (reads - hits) / 90 },
  };
}

export function cacheOf(scene: SceneName): object {
  const families =
    scene === 'empty'
      ? []
      : [
          familyOf('user', 0.95, 10_234, 0.95),
          familyOf('job:status', 0.9, 25_678, 0.9),
          familyOf('doc:summary', 0.85, 5_432, 0.85),
          familyOf('vector:search', 0.7, 1_234, 0.7),
          familyOf('graph', 0.62, 876, 0.75),
          familyOf(hostile, 0.5, 12),
        ];
  return {
    families,
    total: familyOf('*', scene === 'empty' ? 0 : 0.88, scene === 'empty' ? 0 : 43_454),
    processes: [],
  };
}

const stepsMs = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };

export function seriesOf(
  scene: SceneName,
  nowMs: number,
  seed: number,
  step: keyof typeof stepsMs = 'minute',
): Series {
  const stepMs = stepsMs[step];
  const start = Math.floor(nowMs / stepMs) * stepMs - 60 * stepMs;
  return {
    step,
    stepMs,
    complete: true,
    points: Array.from({ length: 60 }, (_, i) => ({
      atMs: start + i * stepMs,
      figures:
        scene === 'empty' || (i > 20 && i < 24)
          ? null
          : {
              done: Math.round(900 + 320 * Math.sin(i / 7 + seed) + 60 * Math.sin(i * 1.7)),
              failed: Math.max(0, Math.round(20 + 16 * Math.sin(i / 4 + seed))),
              died: i % 11 === seed % 11 ? 3 : 0,
              waitP95Ms: 300 + 200 * Math.sin(i / 5),
              runP95Ms: 500 + 120 * Math.cos(i / 6),
              waiting: 200,
              usedBytes: 120e6 + i * 1e5,
              rssBytes: 140e6 + i * 1e5,
              opsPerSecond: 1_200 + 90 * Math.sin(i / 3),
              keys: 12_000 + i * 8,
              clients: 45,
              evicted: 0,
              reads: 700 + 90 * Math.round(3 * Math.sin(i / 6)),
              hits: 610 + 70 * Math.round(3 * Math.sin(i / 6)),
              loads: 60,
            },
    })),
  };
}

export function jobsOf(queue: string, nowMs: number, count: number): JobRow[] {
  return Array.from({ length: count }, (_, i): JobRow => ({
    queue,
    id: i === 0 ? hostile : `01JCX9${(8_231 + i * 37).toString(36).toUpperCase()}`,
    state: (['waiting', 'active', 'delayed', 'dead', 'done'] as const)[i % 5]!,
    createdMs: nowMs - 4_000 * (i + 1),
    attempt: 1 + (i % 3),
    priority: i % 6,
    labels: { tenant: 'acme', owner: hostile },
    ...(i % 4 === 0 && { group: `customer-${i}` }),
    preview:
      i === 1
        ? hostile
        : `{"documentId":"doc-${7_000 + i}","pages":${12 + i},"language":"en","path":"inbox/2026/${i}.pdf"}`,
  }));
}

export function jobOf(queue: string, id: string, nowMs: number): JobDetail {
  const stack = `StorageTimeout: no answer from storage within 5000 ms\n    at read (storage.js:41:11)\n    at handle (${hostile}:17:3)`;
  const attempt = (number: number) => ({
    attempt: number,
    atMs: nowMs - 600_000 + number * 120_000,
    worker: `worker-${number}`,
    kind: number === 2 ? 'timeout' : 'error',
    name: 'StorageTimeout',
    message: `no answer from storage within 5000 ms ${hostile}`,
    stack,
  });
  const attempts = [1, 2, 3].map(attempt);
  return {
    queue,
    id,
    state: 'dead',
    data: {
      documentId: 'doc-7003',
      pages: 12,
      language: 'en',
      note: hostile,
      nested: { list: [1, 2, 3], deep: { yes: true } },
    },
    bytes: 412,
    attempt: 3,
    priority: 3,
    createdMs: nowMs - 600_000,
    progress: 45,
    result: { text: hostile },
    group: hostile,
    error: { name: 'StorageTimeout', message: `no answer ${hostile}`, stack },
    attempts,
    logs: ['opened inbox/2026/3.pdf', hostile, 'page 5 of 12'],
    labels: { tenant: 'acme', owner: hostile },
    timeline: [
      { atMs: nowMs - 600_000, what: 'added' },
      ...attempts.map(({ atMs, attempt: number, kind, name, message, worker }) => ({
        ...{ atMs, what: 'failed', attempt: number, kind, worker },
        message: `${name}: ${message}`,
      })),
      { atMs: nowMs - 240_000, what: 'died' },
    ],
    chain: {
      complete: true,
      jobs: [
        { queue, id, state: 'dead', waitsFor: [] },
        { queue: 'graph', id: 'after-1', state: 'blocked', waitsFor: [{ queue, id }] },
      ],
    },
  };
}

export function lettersOf(nowMs: number): DeadLetter[] {
  return Array.from({ length: 12 }, (_, i) => ({
    id: i === 4 ? hostile : `01JCX8DEAD${i}`,
    title: causes[i % causes.length]!,
    fingerprint: `f${i % causes.length}`,
    attemptCount: 3,
    firstFailureMs: nowMs - 900_000,
    lastFailureMs: nowMs - 60_000 * (i + 1),
    createdMs: nowMs - 1_000_000,
    error: {
      name: 'StorageTimeout',
      message: i === 3 ? hostile : 'no answer from storage within 5000 ms',
      stack: '',
    },
    labels: {},
  }));
}

export function workersOf(nowMs: number, count: number): WorkerRow[] {
  return Array.from({ length: count }, (_, i) => ({
    queue: names[i % names.length]!,
    session: `s${i}`,
    name: i === 1 ? hostile : `worker-${i}`,
    host: i === 1 ? hostile : `node-${i % 7}`,
    pid: 4_000 + i,
    concurrency: 8,
    startedMs: nowMs - 3_600_000 * (i + 1),
    sessions: 1,
    active: i % 9,
    leaseLeftMs: i === 2 ? -4_000 : 21_000,
    drain: i === 3 ? 'draining' : null,
  }));
}

export function alertsOf(scene: SceneName): { items: AlertRow[] } {
  const isBroken = scene === 'broken';
  const row = (
    name: string,
    keep: 'below' | 'above',
    limit: number,
    unit: string,
    value: number,
    path: string,
    about: string,
  ): AlertRow => {
    const met = scene === 'empty' ? null : keep === 'below' ? value < limit : value > limit;
    // One that was kept until a moment ago is not raised yet.
    const isRaised = isBroken && name !== 'oldestDeadLetter';
    return {
      ...{ name, about, keep, limit, unit, met },
      ...{ value: scene === 'empty' ? null : value, link: `https://sluice.example${path}` },
      ...{ state: met === false ? (isRaised ? 'raised' : 'pending') : 'ok', raisedAt: null },
      since: new Date(Date.now() - 7_200_000).toISOString(),
    };
  };
  const given = 'Jobs that were given up and wait for somebody.';
  const oldest = isBroken ? 400_000 : 9_000;
  return {
    items: [
      row('deadLetters', 'below', 50, 'count', isBroken ? 21_643 : 25, '/dead', given),
      row('oldestDeadLetter', 'below', 86_400, 'seconds', oldest, '/dead', 'How long the first waits.'),
      row('retrySuccess', 'above', 0.9, 'share', isBroken ? 0.41 : 0.99, '/retries', 'Those that helped.'),
      row('averageRetries', 'below', 2, 'count', 0.2, '/retries', 'How often a job is tried again.'),
      row('permanentFailures', 'below', 0.05, 'share', isBroken ? 0.2 : 0.002, '/dead', 'Those that died.'),
      row(hostile, 'below', 1, 'count', 0.5, '/', hostile),
      row('hitRate', 'above', 0.8, 'share', 0.88, '/cache', 'Of the reads, those that the cache answered.'),
      row('queriesSaved', 'above', 0.8, 'share', 0.91, '/cache', 'Queries that the cache saved.'),
      row('storageCallsSaved', 'above', 0.8, 'share', 0.85, '/cache', 'Calls that the cache saved.'),
      row(
        'timeSaved',
        'above',
        0.7,
        'share',
        0.64,
        '/cache',
        'Of the time of reads, what they did not take.',
      ),
    ],
  };
}
