// A dead letter: a job that will not be tried again by itself, with everything known about its failures. The payload is the
// job's own, untouched, also when nobody can read it. What the worker that buried it had to say (`buryDetail`) lies beside it
// as JSON, written and read in this file only; the attempts are the records of history.ts.
import { isUtf8 } from 'node:buffer';
import { clipUtf8, fingerprint, MAX_MESSAGE_BYTES } from './fingerprint.js';
import type { ErrorDescription } from './fingerprint.js';
import { decodeAttempt } from './history.js';
import type { AttemptRecord } from './history.js';
import { decodePayload, flag, payloadOf, unpackJob } from './packed.js';
import type { UnpackedJob } from './packed.js';
import type { Partition } from './partition.js';

/** As letters.lua gives it: id, time of death, packed job, fingerprint, title, detail, attempts. */
export type LetterReply = [Buffer, Buffer, Buffer, Buffer, Buffer, Buffer, Buffer[]];

/** Bytes in JSON: text would corrupt them, and an array of numbers would quadruple them. */
export interface Base64Bytes {
  base64: string;
}

export class DeadLetter {
  readonly id: string;
  /** The job's data; undefined when the payload cannot be read. */
  readonly data: unknown;
  /** The payload as it was added, byte by byte. */
  readonly payload: Buffer;
  /** The last failure. */
  readonly error: ErrorDescription;
  /** Equal for letters that died of the same cause. */
  readonly fingerprint: string;
  /** The cause in one line. */
  readonly title: string;
  /** The first failure and the last 19, oldest first; those before a replay included. */
  readonly attempts: AttemptRecord[];
  /** How often it was run since it was added or last replayed. */
  readonly attemptCount: number;
  readonly firstFailureMs: number;
  /** When it died, by the clock of Redis. */
  readonly lastFailureMs: number;
  /** Who ran it last. */
  readonly worker: string;
  readonly priority: number;
  /** When it was added, by the clock of Redis. */
  readonly createdMs: number;
  readonly group: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly #partition: Partition;
  readonly #packed: Buffer;

  constructor(partition: Partition, [id, died, packed, print, title, detail, tries]: LetterReply) {
    const job = unpackJob(packed);
    const said = readDetail(detail.toString());
    this.#partition = partition;
    this.#packed = packed;
    this.id = id.toString();
    this.payload = payloadOf(job);
    this.data = readData(job);
    this.error = { name: said.name, message: said.message, stack: said.stack };
    this.fingerprint = print.toString();
    this.title = title.toString();
    this.attempts = tries.map((record) => decodeAttempt(record.toString()));
    this.attemptCount = said.attempts;
    this.lastFailureMs = Number(died);
    this.firstFailureMs = this.attempts[0]?.atMs || said.atMs || this.lastFailureMs;
    this.worker = said.worker;
    this.priority = job.priority;
    this.createdMs = job.createdMs;
    this.group = job.options?.g;
    this.labels = job.options?.m ?? {};
  }

  /** A form that loses nothing in JSON: bytes become `{ base64 }`, a payload of text stays text. */
  toJSON(): object {
    const data = this.data instanceof Uint8Array ? toBase64(this.data) : this.data;
    const payload = isUtf8(this.payload) ? this.payload.toString() : toBase64(this.payload);
    return Object.assign({}, this, { data, payload });
  }

  /** @internal */
  get partition(): Partition {
    return this.#partition;
  }

  /** @internal The packed job, for whoever changes it on condition that nobody else did. */
  get packed(): Buffer {
    return this.#packed;
  }

  /** @internal The packed job with another payload; its header and options stay. */
  packedWith(payload: string | Uint8Array, payloadFlags: number): Buffer {
    const head = Buffer.from(this.#packed.subarray(0, this.#packed.length - this.payload.length));
    head[0] = (head[0]! & ~(flag.binary | flag.foreign)) | payloadFlags;
    return Buffer.concat([head, typeof payload === 'string' ? Buffer.from(payload) : payload]);
  }
}

interface Detail extends ErrorDescription {
  worker: string;
  atMs: number;
  attempts: number;
}

/** What is written down when a job dies: the detail itself, the fingerprint of its cause, and the cause in one line. */
export function buryDetail(
  error: ErrorDescription,
  worker: string,
  atMs: number,
  attempts: number,
): { detail: string; print: string; title: string } {
  const { name, message, stack } = error;
  const { key, title } = fingerprint(error);
  const detail: Detail = { name, message, stack, worker, atMs: Math.round(atMs), attempts };
  return { detail: JSON.stringify(detail), print: key, title };
}

/** Never throws: a detail that cannot be read must not hide the letter. */
function readDetail(text: string): Detail {
  const nothing = { name: 'unreadable', message: '', stack: '', worker: '', atMs: 0, attempts: 0 };
  try {
    return { ...nothing, ...(JSON.parse(text) as Partial<Detail>) };
  } catch {
    return { ...nothing, message: clipUtf8(text, MAX_MESSAGE_BYTES) };
  }
}

function readData(job: UnpackedJob): unknown {
  try {
    return decodePayload(job);
  } catch {
    return undefined;
  }
}

function toBase64(bytes: Uint8Array): Base64Bytes {
  return { base64: Buffer.from(bytes).toString('base64') };
}
