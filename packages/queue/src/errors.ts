// Everything a queue can refuse, and what to do about it. "Outcome unknown" is never "failed".
import { defineErrors } from '@sluice/base';

export const queueErrors = defineErrors({
  QUEUE_NAME_INVALID: {
    message: (d: { name: string }) =>
      `"${d.name}" cannot name a queue: use 1 to 100 letters, digits, dots, dashes or underscores.`,
    retryable: false,
  },
  OPTION_INVALID: {
    message: (d: { option: string; value: unknown; allowed: string }) =>
      `Option ${d.option} is ${String(d.value)}; it must be ${d.allowed}.`,
    retryable: false,
  },
  PAYLOAD_TOO_LARGE: {
    message: (d: { bytes: number; maxBytes: number }) =>
      `The payload has ${d.bytes} bytes, the limit is ${d.maxBytes}. Put large data in object storage and queue its key, or raise maxPayloadBytes.`,
    retryable: false,
  },
  PAYLOAD_NOT_JSON: {
    message: (d: { reason: string }) =>
      `The payload cannot be written as JSON (${d.reason}). Pass plain data, or a Uint8Array for binary data.`,
    retryable: false,
  },
  QUEUE_FULL: {
    message: (d: { queue: string }) =>
      `Queue ${d.queue} accepts no job now: the memory of Redis is full. Workers go on; add again when they have made room.`,
    retryable: true,
  },
  ADD_UNKNOWN: {
    message: (d: { queue: string; id: string; requestId: string }) =>
      `Whether queue ${d.queue} accepted job ${d.id} is unknown, because Redis did not answer. Add it again with ` +
      `{ id: "${d.id}", requestId: "${d.requestId}" }: it will be there once.`,
    retryable: true,
  },
  ADD_BACKLOG: {
    message: (d: { queue: string; pending: number }) =>
      `${d.pending} adds to queue ${d.queue} are waiting for Redis already. Await earlier adds before making more.`,
    retryable: true,
  },
  DURABILITY_UNKNOWN: {
    message: (d: { queue: string; id: string; wanted: number; reached: number }) =>
      `Job ${d.id} is in queue ${d.queue}, but only ${d.reached} of ${d.wanted} copies confirmed it in time. ` +
      'It may be lost if the master fails now; adding it again with the same id is safe.',
    retryable: true,
  },
  DURABILITY_UNSUPPORTED: {
    message: (d: { reason: string }) => `The durability asked for is not available: ${d.reason}`,
    retryable: false,
  },
  PARTITIONS_MISMATCH: {
    message: (d: { queue: string; stored: number; asked: number }) =>
      `Queue ${d.queue} was made with ${d.stored} partition(s) and is opened with ${d.asked}. Open it with ${d.stored}, or drain it and use a new name.`,
    retryable: false,
  },
  LAYOUT_MISMATCH: {
    message: (d: { queue: string; stored: string; mine: string }) =>
      `Queue ${d.queue} has key layout ${d.stored}; this version of Sluice writes ${d.mine}. Use the version that made it, or drain it first.`,
    retryable: false,
  },
  EVICTING_REDIS: {
    message: (d: { policy: string }) =>
      `This Redis may throw queue keys away (maxmemory-policy ${d.policy}). Set "maxmemory-policy noeviction", or give the queue a Redis of its own.`,
    retryable: false,
  },
  OLD_REDIS: {
    message: (d: { version: string }) => `Redis ${d.version} is too old: Sluice needs 7.0 or newer.`,
    retryable: false,
  },
  UNKNOWN_JOB: {
    message: (d: { queue: string; id: string }) => `Queue ${d.queue} knows no job ${d.id}.`,
    retryable: false,
  },
  UNKNOWN_DEPENDENCY: {
    message: (d: { id: string; queue: string }) =>
      `Job ${d.id} of queue ${d.queue} cannot be waited for: it is not there, and nobody remembers how it ended. ` +
      'Give it an own id or keepResultMs if others are to wait for it after its end.',
    retryable: false,
  },
  CHAIN_INVALID: {
    message: (d: { reason: string }) => `The chain cannot be made: ${d.reason}`,
    retryable: false,
  },
  SCHEDULE_INVALID: {
    message: (d: { name: string; reason: string }) => `Schedule "${d.name}" cannot be set: ${d.reason}`,
    retryable: false,
  },
  EDIT_CONFLICT: {
    message: (d: { id: string }) =>
      `Dead letter ${d.id} was changed by somebody else. Read it again before editing it.`,
    retryable: false,
  },
  UNIQUE_KEY_TAKEN: {
    message: (d: { id: string }) =>
      `Dead letter ${d.id} stays dead: another job holds its unique key. Replay it when that job has ended.`,
    retryable: true,
  },
  LEASE_LOST: {
    message: (d: { session: string }) =>
      `Session ${d.session} was rescued: others run its jobs now. The outcome of what it was doing is unknown.`,
    retryable: false,
  },
  NOT_HELD: {
    message: (d: { id: string }) =>
      `Job ${d.id} is no longer held by this worker; it was ended or cancelled.`,
    retryable: false,
  },
  JOB_TIMEOUT: {
    message: (d: { timeoutMs: number }) => `The job ran longer than its ${d.timeoutMs} ms.`,
    retryable: true,
  },
  WORKER_CRASHED: {
    message: (d: { crashes: number }) => `The job was running when its worker died, ${d.crashes} times.`,
    retryable: false,
  },
  CHILD_DIED: {
    message: (d: { reason: string }) => `The child process that ran the job died: ${d.reason}.`,
    retryable: true,
  },
  MALFORMED: {
    message: (d: { reason: string }) => `The message is malformed: ${d.reason}`,
    retryable: false,
  },
  BATCH_OUTCOMES: {
    message: (d: { jobs: number; outcomes: number }) =>
      `A batch handler must return one outcome per job: it got ${d.jobs} jobs and returned ${d.outcomes} outcomes.`,
    retryable: false,
  },
  CLOSED: {
    message: (d: { what: string }) => `${d.what} is closed.`,
    retryable: false,
  },
  BACKOFF_INVALID: {
    message: (d: { field: string; given: unknown; expected: string }) =>
      `backoff ${d.field} must be ${d.expected}, not ${String(d.given)}`,
    retryable: false,
  },
  PAYLOAD_INVALID: {
    message: (d: { issues: { path: string; message: string }[]; issueCount: number }) =>
      `the payload does not fit its schema: ${listIssues(d.issues, d.issueCount)}`,
    retryable: false,
  },
  SCHEMA_UNSUPPORTED: {
    message: () => 'the schema does not implement Standard Schema v1 (zod 3.24+, valibot 1+, arktype 2+ do)',
    retryable: false,
  },
  CRON_INVALID: {
    message: (d: { cron: unknown; reason: string }) =>
      `cron expression ${show(d.cron)} is invalid: ${d.reason}`,
    retryable: false,
  },
  TIME_ZONE_INVALID: {
    message: (d: { timeZone: unknown }) =>
      `time zone ${show(d.timeZone)} is unknown; use an IANA name such as Europe/Berlin`,
    retryable: false,
  },
  INTERVAL_INVALID: {
    message: (d: { field: string; given: unknown; expected: string }) =>
      `${d.field} must be ${d.expected}, not ${show(d.given)}`,
    retryable: false,
  },
  CHAIN_UNKNOWN: {
    message: (d: { chain: string; jobs: readonly unknown[] }) =>
      `Whether chain ${d.chain} (${d.jobs.length} jobs) was made completely is unknown. ` +
      'If it was not, workers complete it or cancel it. Making it again with the same ids is safe.',
    retryable: true,
  },
  JOB_DEAD: {
    message: (d: { queue: string; id: string; reason: string }) =>
      `Job ${d.id} of queue ${d.queue} died: ${d.reason}. It can be replayed from the dead letters.`,
    retryable: false,
  },
  JOB_CANCELLED: {
    message: (d: { queue: string; id: string }) => `Job ${d.id} of queue ${d.queue} was cancelled.`,
    retryable: false,
  },
  RESULT_TIMEOUT: {
    message: (d: { queue: string; id: string; waitedMs: number }) =>
      `Job ${d.id} of queue ${d.queue} has not ended within ${d.waitedMs} ms. It goes on; ask again later.`,
    retryable: true,
  },
});

function listIssues(issues: readonly { path: string; message: string }[], issueCount: number): string {
  const listed = issues.map(({ path, message }) => `${path || 'payload'}: ${message}`);
  const unlisted = issueCount - issues.length;
  return [...listed, ...(unlisted > 0 ? [`and ${unlisted} more`] : [])].join('; ');
}

function show(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}
