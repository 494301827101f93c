// Jobs that travel to Redis in one call, and how they are written for it.
//
// Plain jobs (a priority and a payload, nothing else) are packed into the call's buffer as they come: their texts die young, and
// when the call is sent nothing is left to do. Special jobs are kept and written when they are sent.
import { headerBytes, makeHeader, writeHeader } from './packed.js';
import type { FailurePolicy, PreparedOptions } from './options.js';
import { Packer } from './wire.js';

export const maxJobsPerCall = 1_000;
const maxBytesPerCall = 1024 * 1024;

export interface NewJob {
  id: string;
  payload: string | Uint8Array;
  flags: number;
  options: PreparedOptions;
  after?: { refs: string[]; policy: FailurePolicy } | undefined;
  dead?: { detail: string; print: string; title: string } | undefined;
}

export interface AddAnswer {
  queue: string;
  id: string;
  duplicate: boolean;
}

export function isPlain(job: NewJob): boolean {
  return job.options.plain && !job.after && !job.dead;
}

export class Call {
  /** Producer, lane and number, once it has been sent. With a job's position in the call that is the job's request id. */
  request = '';
  readonly isPlain: boolean;
  /** The answers, or nothing when all jobs were added as they are: that is all a plain call can say. */
  readonly promise: Promise<AddAnswer[] | undefined>;
  resolve!: (answers: AddAnswer[] | undefined) => void;
  reject!: (error: unknown) => void;
  firstId = '';
  size = 0;
  /** The jobs of a special call. */
  readonly jobs: NewJob[] = [];
  #bytes = 0;
  readonly #createdMs: number;
  readonly #entries: Packer | undefined;
  /** Of all of its jobs; '' when they differ. */
  #priority: number | '' = '';
  readonly #headers: Buffer[] = [];

  constructor(plain: boolean, createdMs: number) {
    this.isPlain = plain;
    this.#createdMs = createdMs;
    if (plain) {
      this.#entries = new Packer(4_096);
      this.#entries.array(0);
    }
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    // A call that fails while its callers are still being collected must not end the process.
    this.promise.catch(() => {});
  }

  hasRoomFor(job: NewJob, most: number): boolean {
    return this.size < most && (this.size === 0 || this.#bytes + boundOf(job) <= maxBytesPerCall);
  }

  /** Returns the position of the job in the call. */
  add(job: NewJob): number {
    if (this.size === 0) this.firstId = job.id;
    const bytes = boundOf(job);
    this.#bytes += bytes;
    if (this.#entries) this.#pack(this.#entries, job, bytes);
    else this.jobs.push(job);
    return this.size++;
  }

  /** The arguments of add.lua. */
  get packed(): { entries: Buffer; priority: number | '' } {
    const entries = this.#entries!.take();
    entries.writeUInt32BE(this.size * 2, 1);
    return { entries, priority: this.#priority };
  }

  #pack(entries: Packer, job: NewJob, bytes: number): void {
    const { priority } = job.options;
    const kind = job.flags * 8 + priority;
    this.#headers[kind] ??= makeHeader(job.flags, priority, this.#createdMs);
    entries.reserve(bytes);
    entries.short(job.id);
    const start = entries.begin();
    entries.rawBytes(this.#headers[kind]);
    writePayload(entries, job);
    entries.end(start);
    if (priority !== this.#priority) this.#priority = this.size === 0 ? priority : '';
  }
}

/** The items of addEach.lua. */
export function packItems(jobs: readonly NewJob[], createdMs: number): Buffer {
  const items = new Packer(jobs.reduce((sum, job) => sum + itemBound(job), 100));
  items.array(jobs.length);
  for (const job of jobs) writeItem(items, job, createdMs);
  return items.take();
}

/** An upper bound of what a job takes on the wire: exact lengths would mean encoding it twice. */
function boundOf(job: NewJob): number {
  if (!isPlain(job)) return itemBound(job);
  return payloadBound(job) + job.id.length * 3 + headerBytes + 16;
}

/** The same for an item of addEach.lua, which has twelve fields whatever the job is. */
function itemBound(job: NewJob): number {
  const refs = job.after ? job.after.refs.reduce((sum, ref) => sum + ref.length * 3 + 5, 0) : 0;
  const dead = job.dead ? (job.dead.detail.length + job.dead.title.length) * 3 + 64 : 0;
  const { json, uniqueKey } = job.options;
  return (
    payloadBound(job) + (job.id.length + json.length + uniqueKey.length) * 3 + refs + dead + headerBytes + 200
  );
}

function payloadBound({ payload }: NewJob): number {
  return typeof payload === 'string' ? payload.length * 3 : payload.length;
}

function writePayload(to: Packer, { payload }: NewJob): void {
  if (typeof payload === 'string') to.raw(payload);
  else to.rawBytes(payload);
}

function writeJob(to: Packer, job: NewJob, createdMs: number): void {
  const start = to.begin();
  writeHeader(to, job.options.flags | job.flags, job.options.priority, createdMs, job.options.json);
  writePayload(to, job);
  to.end(start);
}

function writeItem(to: Packer, job: NewJob, createdMs: number): void {
  const { ownId, delayMs, runAtMs, uniqueKey, uniqueWindowMs } = job.options;
  to.array(12);
  to.text(job.id);
  writeJob(to, job, createdMs);
  to.int(ownId === undefined ? 0 : 1);
  to.text(delayMs === undefined ? '' : String(delayMs));
  to.text(runAtMs === undefined ? '' : String(Math.floor(runAtMs)));
  to.text(uniqueKey);
  to.text(uniqueWindowMs === undefined ? '' : String(uniqueWindowMs));
  to.value(job.after?.refs ?? []);
  to.text(job.after?.policy ?? '');
  to.text(job.dead?.detail ?? '');
  to.text(job.dead?.print ?? '');
  to.text(job.dead?.title ?? '');
}
