// Jobs that travel to Redis in one call, and how they are written for it.
//
// Plain jobs (a priority and a payload, nothing else) are packed into the call's buffer as they come: their texts die young, and
// when the call is sent nothing is left to do. Neighbours go into bales, as bale.lua describes them: one field and one entry for up
// to 16 jobs, whose ids are those of their places. Special jobs are kept and written when they are sent.
import { betweenJobs, maxBaleLength, maxBaledLength, maxJobsPerBale } from './bale.js';
import { flag, headerBytes, makeHeader, writeHeader } from './packed.js';
import type { FailurePolicy, PreparedOptions } from './options.js';
import { Packer } from './wire.js';

export const maxJobsPerCall = 1_000;
const maxBytesPerCall = 1024 * 1024;
const maxPlainIdLength = 32;
const baleBound = maxPlainIdLength + headerBytes + 16;

export interface NewJob {
  /** A plain job gets its id with its place in a call. */
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

/** The bale that is being filled. Its first job is written when there is a second, or none will come. */
interface OpenBale {
  stem: string;
  kind: number;
  size: number;
  length: number;
  first: string;
  start: number;
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
  readonly #newStem: () => string;
  #bale: OpenBale | undefined;
  /** Fields and entries: jobs of their own, and bales. */
  #written = 0;

  constructor(plain: boolean, createdMs: number, newStem: () => string) {
    this.isPlain = plain;
    this.#createdMs = createdMs;
    this.#newStem = newStem;
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
    return this.#hasRoom(1, boundOf(job), most);
  }

  hasRoomForBale(size: number, lines: string, most: number): boolean {
    return this.#hasRoom(size, lines.length * 3 + baleBound, most);
  }

  /** A whole bale of plain jobs that have nothing but a payload; returns the stem of their ids. */
  addBale(size: number, lines: string, priority: number): string {
    const entries = this.#entries!;
    const bytes = lines.length * 3 + baleBound;
    entries.reserve(bytes + maxBaledLength * 3 + 64);
    this.#closeBale(entries);
    const stem = this.#newStem();
    entries.short(`=${stem}`);
    const start = entries.begin();
    entries.rawBytes(this.#header(flag.bale * 8 + priority));
    entries.raw(lines);
    entries.end(start);
    entries.setByte(start + 1, size);
    if (priority !== this.#priority) this.#priority = this.size === 0 ? priority : '';
    if (this.size === 0) this.firstId = `${stem}.0`;
    this.#written++;
    this.#bytes += bytes;
    this.size += size;
    return stem;
  }

  /** Returns the position of the job in the call. */
  add(job: NewJob): number {
    const bytes = boundOf(job);
    this.#bytes += bytes;
    if (this.#entries) this.#pack(this.#entries, job, bytes);
    else this.jobs.push(job);
    if (this.size === 0) this.firstId = job.id;
    return this.size++;
  }

  /** The arguments of add.lua; nothing is added afterwards. */
  finish(): { entries: Buffer; priority: number | ''; baled: number } {
    this.#closeBale(this.#entries!);
    const entries = this.#entries!.take();
    entries.writeUInt32BE(this.#written * 2, 1);
    return { entries, priority: this.#priority, baled: this.size - this.#written };
  }

  #hasRoom(size: number, bytes: number, most: number): boolean {
    return this.size + size <= most && (this.size === 0 || this.#bytes + bytes <= maxBytesPerCall);
  }

  #pack(entries: Packer, job: NewJob, bytes: number): void {
    const { payload, flags, options } = job;
    const { priority } = options;
    const kind = flags * 8 + priority;
    // What has been begun may have to be written, too.
    entries.reserve(bytes + maxBaledLength * 3 + 64);
    if (priority !== this.#priority) this.#priority = this.size === 0 ? priority : '';
    const isBaled = typeof payload === 'string' && payload.length > 0 && payload.length <= maxBaledLength;
    const bale = this.#bale;
    if (isBaled && bale && this.#fits(bale, kind, payload.length)) {
      if (bale.size === 1) this.#beginBale(entries, bale);
      entries.ascii(betweenJobs);
      entries.raw(payload);
      job.id = `${bale.stem}.${bale.size}`;
      bale.size++;
      bale.length += payload.length;
      return;
    }
    this.#closeBale(entries);
    this.#written++;
    const stem = this.#newStem();
    job.id = `${stem}.0`;
    if (isBaled) this.#bale = { stem, kind, size: 1, length: payload.length, first: payload, start: 0 };
    else this.#writeAlone(entries, job.id, kind, payload);
  }

  #fits({ kind, size, length }: OpenBale, kindOfJob: number, lengthOfJob: number): boolean {
    return kind === kindOfJob && size < maxJobsPerBale && length + lengthOfJob <= maxBaleLength;
  }

  #beginBale(entries: Packer, bale: OpenBale): void {
    entries.short(`=${bale.stem}`);
    bale.start = entries.begin();
    entries.rawBytes(this.#header(bale.kind | (flag.bale * 8)));
    entries.raw(bale.first);
  }

  #closeBale(entries: Packer): void {
    const bale = this.#bale;
    this.#bale = undefined;
    if (bale?.size === 1) return this.#writeAlone(entries, `${bale.stem}.0`, bale.kind, bale.first);
    if (!bale) return;
    entries.end(bale.start);
    entries.setByte(bale.start + 1, bale.size);
  }

  #writeAlone(entries: Packer, id: string, kind: number, payload: string | Uint8Array): void {
    entries.short(id);
    const start = entries.begin();
    entries.rawBytes(this.#header(kind));
    if (typeof payload === 'string') entries.raw(payload);
    else entries.rawBytes(payload);
    entries.end(start);
  }

  #header(kind: number): Buffer {
    this.#headers[kind] ??= makeHeader(kind >> 3, kind & 7, this.#createdMs);
    return this.#headers[kind];
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
  return payloadBound(job) + baleBound;
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
