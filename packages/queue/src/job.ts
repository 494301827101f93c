// A job as its handler sees it. Everything that most handlers never use costs nothing until it is used: the AbortSignal is
// made when it is first read.
import { payloadInBale } from './bale.js';
import { queueErrors } from './errors.js';
import type { Heartbeat } from './heartbeat.js';
import { flag, payloadOf } from './packed.js';
import type { StoredOptions, UnpackedJob } from './packed.js';
import type { Partition } from './partition.js';

export const maxLogLines = 1_000;
const maxLogLineBytes = 4_096;

/** What a job needs from the session that holds it. */
export interface Holder {
  readonly session: string;
  readonly partition: Partition;
}

export class Job<Data = unknown> {
  readonly queue: string;
  readonly data: Data;
  /** Grows with every claim: pass it to whatever you write to, and refuse a smaller one there. */
  readonly token: string;
  /** Its id, or the stem of its bale; most quick jobs of a bale end without anybody asking for their ids. */
  readonly #name: string;
  readonly #place: number | undefined;
  readonly #stored: UnpackedJob;
  readonly #holder: Holder;
  #flags: number;
  #abort: AbortController | undefined;
  #abortReason: unknown;

  constructor(
    queue: string,
    name: string,
    place: number | undefined,
    token: string,
    stored: UnpackedJob,
    data: Data,
    holder: Holder,
  ) {
    this.queue = queue;
    this.#name = name;
    this.#place = place;
    this.token = token;
    this.data = data;
    this.#stored = stored;
    this.#flags = stored.flags;
    this.#holder = holder;
  }

  get id(): string {
    return this.#place === undefined ? this.#name : `${this.#name}.${this.#place}`;
  }

  /** 1 in the first run. */
  get attempt(): number {
    return this.#stored.attempts + 1;
  }

  /** How often a worker died while it ran this job. */
  get crashes(): number {
    return this.#stored.crashes;
  }

  get priority(): number {
    return this.#stored.priority;
  }

  /** When it was added, by the clock of Redis. */
  get createdMs(): number {
    return this.#stored.createdMs;
  }

  /** The payload as it is stored, for data that JSON.parse would round. */
  get payload(): Buffer {
    const { flags } = this.#stored;
    return flags & flag.bale ? payloadInBale(this.#stored, this.#place!) : payloadOf(this.#stored);
  }

  get group(): string | undefined {
    return this.#stored.options?.g;
  }

  get labels(): Readonly<Record<string, string>> {
    return this.#stored.options?.m ?? {};
  }

  /** Fires when the job is out of time, cancelled, or no longer ours. */
  get signal(): AbortSignal {
    if (!this.#abort) {
      this.#abort = new AbortController();
      if (this.#abortReason !== undefined) this.#abort.abort(this.#abortReason);
    }
    return this.#abort.signal;
  }

  /** Reports how far the job is: any JSON value; the last one counts. */
  async progress(value: unknown): Promise<void> {
    await this.#note('progress', JSON.stringify(value) ?? 'null');
  }

  /** Writes a line to the job's log, of which the last 1,000 lines are kept. */
  async log(line: string): Promise<void> {
    await this.#note('log', line.length > maxLogLineBytes ? `${line.slice(0, maxLogLineBytes)}…` : line);
  }

  /** @internal */
  get options(): StoredOptions | undefined {
    return this.#stored.options;
  }

  /** @internal When it was claimed, for how long it had waited. */
  waitedMs(redisNowMs: number): number {
    return redisNowMs - this.#stored.createdMs;
  }

  /** @internal Its handler is called now. */
  enter(heartbeat: Heartbeat): void {
    heartbeat.enter(this.#name, this.#place);
  }

  /** @internal Whether the end of this job must go through settle.lua. */
  get leavesTraces(): boolean {
    return (this.#flags & (flag.settles | flag.traces)) !== 0;
  }

  /** @internal */
  abort(reason: unknown): void {
    this.#abortReason = reason;
    this.#abort?.abort(reason);
  }

  async #note(kind: 'progress' | 'log', value: string): Promise<void> {
    this.#flags |= flag.traces;
    const { session, partition } = this.#holder;
    const answer = String(
      await partition.run('note', {
        session,
        id: this.id,
        token: this.token,
        kind,
        value,
        keep: maxLogLines,
      }),
    );
    if (answer === 'LEASE_LOST') throw queueErrors.LEASE_LOST({ session });
    if (answer === 'ALREADY') throw queueErrors.NOT_HELD({ id: this.id });
  }
}
