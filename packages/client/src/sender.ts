/**
 * Sends chunks, several at a time, until none is left to send. Each lane takes a chunk, reads it, writes its digest down, and
 * sends it until the server has acknowledged it. The lanes of a round end together: when one fails, the others are stopped.
 *
 *     take ─▶ read, digest, note ─▶ wait for a place (pace.ts) ─▶ PUT ─▶ acknowledged
 *                   ▲                                              │
 *                   └── DIGEST_MISMATCH: damaged on the way ◀──────┤
 *                        WINDOW_EXCEEDED: a lower one first ◀──────┤
 *                        no answer: ask whether it arrived ◀───────┤
 *                        429: fewer lanes, then again ◀────────────┘
 *                             no room: lower ones that were lost first
 */
import { SluiceUploadError, uploadError } from './errors.js';
import type { Meter } from './meter.js';
import { Pace } from './pace.js';
import type { Bytes, Platform } from './platform.js';
import type { Ack, Protocol, Shipment, UploadView } from './protocol.js';
import { isMissing } from './ranges.js';
import type { UploadRecord } from './record.js';
import { unlessAborted } from './retry.js';
import type { FailureCounter, Patience } from './retry.js';
import type { Source } from './source.js';

export interface SenderTools {
  protocol: Protocol;
  platform: Platform;
  source: Source;
  record: UploadRecord;
  patience: Patience;
  meter: Meter;
  parallel: number;
}

/** How the chunks of one upload are cut and sent. */
export interface Cut {
  uploadId: string;
  chunkSize: number;
  /** `range` when the server was told no chunk size. */
  as: 'chunk' | 'range';
  size: number | null;
  /** The digest of a stream is declared at the end, so its last chunk must not end the upload. */
  digestFollows: boolean;
}

export class Sender {
  readonly #tools: SenderTools;
  readonly #pace: Pace;

  constructor(tools: SenderTools) {
    this.#tools = tools;
    this.#pace = new Pace(tools.parallel);
  }

  /** Sends these chunks and, of a stream, all that follow. Returns the acknowledgement that told of the end, if one did. */
  async send(
    cut: Cut,
    indexes: number[],
    proven: Set<number>,
    signal: AbortSignal,
  ): Promise<Ack | undefined> {
    const round = new AbortController();
    const stop = (): void => round.abort(signal.reason);
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
    const work = new Round(this.#tools, this.#pace, cut, indexes, proven, round.signal);
    try {
      const lanes = Array.from({ length: this.#tools.parallel }, () => work.lane());
      await Promise.all(lanes.map((lane) => lane.catch((failure: unknown) => work.end(failure, round))));
    } finally {
      signal.removeEventListener('abort', stop);
    }
    signal.throwIfAborted();
    if (work.failure) throw work.failure.thrown;
    return work.ended;
  }
}

class Round {
  /** The first failure counts; those of the lanes that were stopped because of it do not. */
  failure: { thrown: unknown } | undefined;
  ended: Ack | undefined;
  /** Chunks being sent now, each with the promise of its end. */
  readonly #inFlight = new Map<number, Promise<void>>();
  readonly #sent = new Set<number>();
  #taken = 0;

  constructor(
    private readonly tools: SenderTools,
    private readonly pace: Pace,
    private readonly cut: Cut,
    private readonly indexes: number[],
    private readonly proven: Set<number>,
    private readonly signal: AbortSignal,
  ) {}

  async lane(): Promise<void> {
    for (let index = await this.#take(); index !== undefined; index = await this.#take()) {
      await this.#deliver(index);
      if (this.ended) return;
    }
  }

  end(failure: unknown, round: AbortController): void {
    this.failure ??= { thrown: failure };
    round.abort();
  }

  async #take(): Promise<number | undefined> {
    while (this.#taken < this.indexes.length) {
      const index = this.indexes[this.#taken++]!;
      // It may have been sent out of turn.
      if (!this.#inFlight.has(index) && !this.#sent.has(index)) return index;
    }
    const { source, parallel } = this.tools;
    if (source.kind === 'file') return undefined;
    const chunk = await unlessAborted(source.pull(this.cut.chunkSize, parallel), this.signal);
    return chunk?.index;
  }

  /** One delivery of a chunk at a time; a second one waits for the first. */
  async #deliver(index: number): Promise<void> {
    const running = this.#inFlight.get(index);
    if (running) return running.catch(() => {});
    const delivery = this.#insist(index).finally(() => this.#inFlight.delete(index));
    this.#inFlight.set(index, delivery);
    await delivery;
  }

  async #insist(index: number): Promise<void> {
    const failed = this.tools.patience.counter();
    let bytes: Bytes | undefined;
    for (let attempt = 1; ; attempt++) {
      bytes ??= await this.#bytesOf(index);
      try {
        const ack = await this.#attempt(index, bytes);
        // An upload that has all its bytes answers any chunk without comparing it. Unless it was ours already, that proves nothing.
        const compared = !hasEnded(ack) || ack.duplicate !== true || attempt > 1;
        return this.#acknowledge(index, ack, compared);
      } catch (failure) {
        this.signal.throwIfAborted();
        if (!(failure instanceof SluiceUploadError)) throw failure;
        // What was damaged may have been damaged here: it is read again.
        if (failure.code === 'DIGEST_MISMATCH' || failure.code === 'WINDOW_EXCEEDED') bytes = undefined;
        if (await this.#wayOut(index, failure, failed)) return;
      }
    }
  }

  async #attempt(index: number, bytes: Bytes): Promise<Ack> {
    const { protocol, platform, record, meter } = this.tools;
    const digest = await platform.digest(bytes);
    await record.note(index, digest);
    await this.pace.enter(this.signal);
    const sent = meter.sending(bytes.length);
    try {
      return await protocol.send(this.cut.uploadId, this.#shipment(index, bytes, digest), this.signal);
    } finally {
      sent();
      this.pace.leave();
    }
  }

  #shipment(index: number, bytes: Bytes, digest: string): Shipment {
    const { chunkSize, size, digestFollows } = this.cut;
    const isShort = size === null && bytes.length < chunkSize;
    const shortAs = digestFollows ? 'range' : 'last chunk';
    const as = this.cut.as === 'chunk' && isShort ? shortAs : this.cut.as;
    return { index, firstByte: index * chunkSize, bytes, digest, as, size };
  }

  #acknowledge(index: number, ack: Ack, compared = true): void {
    const { patience, meter, source } = this.tools;
    this.#sent.add(index);
    if (compared) this.proven.add(index);
    if (source.kind === 'stream') source.acked(index);
    patience.renew(ack.receivedBytes);
    this.pace.faster();
    meter.acked(ack.receivedBytes);
    if (hasEnded(ack)) this.ended = ack;
  }

  /** After a failed attempt: waits for what helps. True if the chunk turns out to have arrived. */
  async #wayOut(index: number, failure: SluiceUploadError, failed: FailureCounter): Promise<boolean> {
    if (failure.status === 429) this.pace.slower();
    if (mayHaveEnded(failure)) {
      const view = await this.#look();
      if (!hasEnded(view)) throw failure;
      this.ended = view;
      return true;
    }
    if (failure.code === 'WINDOW_EXCEEDED') {
      const first = this.#sendFirst(failure);
      // Always a lower one, so that two lanes cannot wait for each other.
      if (first !== undefined && first < index && !this.#sent.delete(first)) {
        await this.#deliver(first);
        return false;
      }
      // It was acknowledged, perhaps just now. Who still lacks it after a wait has lost it and gets it again.
    }
    const worthRepeating = failure.code === 'WINDOW_EXCEEDED' || failure.code === 'DIGEST_MISMATCH';
    await failed(failure, this.signal, worthRepeating);
    if (failure.code === 'BUDGET_EXHAUSTED') await this.#deliverLower(index);
    return failure.code === 'NETWORK' && (await this.#arrived(index));
  }

  /** The chunk that the server wants before: its number, or the first byte of a range. */
  #sendFirst({ details = {} }: SluiceUploadError): number | undefined {
    const told = details['sendFirst'];
    const isRange = Array.isArray(told);
    const value: unknown = isRange ? told[0] : told;
    if (!Number.isSafeInteger(value) || Number(value) < 0) return undefined;
    const isByte = isRange || this.cut.as === 'range';
    return isByte ? Math.floor(Number(value) / this.cut.chunkSize) : Number(value);
  }

  /**
   * A server without room takes the lowest bytes first. It may have lost some that it had acknowledged, and then waits for them while
   * all lanes wait for room.
   */
  async #deliverLower(index: number): Promise<void> {
    const { chunkSize } = this.cut;
    const view = await this.#look();
    const [lowest] = view.missing;
    if (!lowest) return;
    for (let lower = Math.floor(lowest[0] / chunkSize); lower < index; lower++) {
      if (!isMissing(view, lower * chunkSize, (lower + 1) * chunkSize)) continue;
      this.#sent.delete(lower);
      await this.#deliver(lower);
    }
  }

  /** A request without an answer may have been carried out: whoever asks does not send the chunk a second time. */
  async #arrived(index: number): Promise<boolean> {
    const { source } = this.tools;
    const view = await this.#look();
    const first = index * this.cut.chunkSize;
    const size = this.cut.size ?? Number.MAX_SAFE_INTEGER;
    const held = source.kind === 'stream' ? source.held(index)?.bytes.length : undefined;
    const end = Math.min(size, first + (held ?? this.cut.chunkSize));
    if (isMissing(view, first, end) !== false) return false;
    this.#acknowledge(index, view);
    return true;
  }

  #look(): Promise<UploadView> {
    const { protocol, patience } = this.tools;
    return patience.persist(this.signal, () => protocol.status(this.cut.uploadId, this.signal));
  }

  async #bytesOf(index: number): Promise<Bytes> {
    const { source } = this.tools;
    if (source.kind === 'stream') {
      const chunk = source.held(index);
      if (!chunk) throw uploadError('SOURCE_CONSUMED', `chunk ${index}`);
      return chunk.bytes;
    }
    const first = index * this.cut.chunkSize;
    return source.read(first, Math.min(source.size, first + this.cut.chunkSize));
  }
}

function hasEnded({ state }: Pick<Ack, 'state'>): boolean {
  return state !== 'PENDING' && state !== 'UPLOADING';
}

/** A chunk may be refused because the upload is over; what became of it only the view can say. */
function mayHaveEnded({ status, code }: SluiceUploadError): boolean {
  return status === 409 && !isConflict({ code }) && code !== 'WINDOW_EXCEEDED';
}

/** The server has other bytes in this place: another file, or the same one cut otherwise. */
export function isConflict({ code }: Pick<SluiceUploadError, 'code'>): boolean {
  return code === 'CHUNK_CONFLICT' || code === 'RANGE_OVERLAPS';
}
