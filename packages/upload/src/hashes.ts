// The SHA-256 of whole files, computed in passing. SHA-256 needs the bytes in order, and chunks come in parallel; those that are a
// little early are remembered until their turn, within a bound on the memory of all uploads together. Whoever is too far ahead,
// meets a gap, or is served by several instances has no digest in the end: then the object is read back once, when it is complete.
//
// Bytes pass before they are committed, and a commit may be refused: another process may have brought other bytes for the same chunk.
// So the digest is given to the last request only, when all others have been committed; a refusal spoils it for good.
import { createHash, type Hash } from 'node:crypto';

/** For all uploads of this process together. */
const aheadLimitBytes = 48 * 1_048_576;
const maxRuns = 4_096;
const forgetAfterMs = 120_000;

interface Run {
  hash: Hash;
  position: number;
  /** What came early: where it begins, and its bytes. */
  early: Map<number, Buffer[]>;
  earlyBytes: number;
  touchedMs: number;
}

/** A request that brings a range of bytes. */
export interface Passage {
  from: number;
  to: number;
  /** Some of its bytes were hashed, or are remembered for their turn. */
  isHashed: boolean;
  /** Its bytes are there; it waits for nothing but its commit. */
  isCommitting: boolean;
  ended: Promise<void>;
  end: () => void;
}

export class PassingHashes {
  readonly #runs = new Map<string, Run | undefined>();
  /** Ranges of bytes that requests are bringing now. */
  readonly #coming = new Map<string, Set<Passage>>();
  #aheadBytes = 0;

  /** A request begins to bring a range; `end` ends it. Two that bring the same bytes at once may bring different ones. */
  begin(id: string, from: number, length: number): Passage {
    const coming = this.#coming.get(id) ?? new Set();
    this.#coming.set(id, coming);
    let tell: () => void = () => {};
    const ended = new Promise<void>((resolve) => (tell = resolve));
    const end = (): void => {
      coming.delete(passage);
      if (coming.size === 0 && this.#coming.get(id) === coming) this.#coming.delete(id);
      tell();
    };
    const flags = { isHashed: false, isCommitting: false };
    const passage: Passage = { from, to: from + length, ...flags, ended, end };
    if ([...coming].some((other) => other.from < passage.to && other.to > passage.from)) this.spoil(id);
    coming.add(passage);
    return passage;
  }

  /**
   * The digest in hex for the commit of this passage, if exactly the first `size` bytes have passed and everybody else's are committed.
   * Of several that are at their commits the last waits for the others; they do not wait for it.
   */
  async digestFor(passage: Passage, id: string, size: number): Promise<string | undefined> {
    passage.isCommitting = true;
    if (this.#runs.get(id)?.position !== size) return undefined;
    const others = [...(this.#coming.get(id) ?? [])].filter((other) => other !== passage);
    if (others.some(({ isCommitting }) => !isCommitting)) return undefined;
    await Promise.all(others.map(({ ended }) => ended));
    return this.#digest(id, size);
  }

  /** The bytes at `offset` are passing by. Every chunk is passed once, each of its pieces in order. */
  pass(id: string, offset: number, bytes: Buffer, passage?: Passage): void {
    const run = this.#runOf(id, offset);
    if (!run) return;
    if (passage && offset >= run.position) passage.isHashed = true;
    if (offset === run.position) {
      run.hash.update(bytes);
      run.position += bytes.length;
      if (run.early.size > 0) this.#catchUp(run);
    } else if (offset > run.position) this.#keep(id, run, offset, bytes);
    // What lies before has been passed already: a chunk that is sent again.
  }

  /** Bytes were passed that do not count: nobody knows any more what was hashed. */
  spoil(id: string): void {
    this.#forget(id);
    this.#runs.set(id, undefined);
  }

  /** The digest in hex, if exactly the first `size` bytes have passed and nobody is bringing any. */
  digest(id: string, size: number): string | undefined {
    return this.#coming.has(id) ? undefined : this.#digest(id, size);
  }

  #digest(id: string, size: number): string | undefined {
    const run = this.#runs.get(id);
    return run?.position === size ? run.hash.copy().digest('hex') : undefined;
  }

  end(id: string): void {
    this.#forget(id);
    this.#runs.delete(id);
  }

  #runOf(id: string, offset: number): Run | undefined {
    const known = this.#runs.get(id);
    if (known || this.#runs.has(id)) {
      if (known) known.touchedMs = performance.now();
      return known;
    }
    // A process that joins later has missed the beginning; a chunk or two ahead of it is still worth a try.
    if (this.#runs.size >= maxRuns) this.#makeRoom();
    if (this.#runs.size >= maxRuns || offset > aheadLimitBytes) return undefined;
    const run: Run = {
      hash: createHash('sha256'),
      position: 0,
      early: new Map(),
      earlyBytes: 0,
      touchedMs: performance.now(),
    };
    this.#runs.set(id, run);
    return run;
  }

  #keep(id: string, run: Run, offset: number, bytes: Buffer): void {
    if (run.early.has(offset)) return;
    this.#aheadBytes += bytes.length;
    run.earlyBytes += bytes.length;
    if (this.#aheadBytes > aheadLimitBytes) this.#makeRoom();
    if (this.#aheadBytes > aheadLimitBytes) return this.spoil(id);
    for (const [start, list] of run.early) {
      const stop = start + list.reduce((sum, { length }) => sum + length, 0);
      if (stop === offset) return void list.push(bytes);
    }
    run.early.set(offset, [bytes]);
  }

  #catchUp(run: Run): void {
    for (let list = run.early.get(run.position); list; list = run.early.get(run.position)) {
      run.early.delete(run.position);
      for (const bytes of list) {
        run.hash.update(bytes);
        run.position += bytes.length;
        run.earlyBytes -= bytes.length;
        this.#aheadBytes -= bytes.length;
      }
    }
  }

  #forget(id: string): void {
    const run = this.#runs.get(id);
    if (run) this.#aheadBytes -= run.earlyBytes;
  }

  #makeRoom(): void {
    const before = performance.now() - forgetAfterMs;
    for (const [id, run] of this.#runs) if (!run || run.touchedMs < before) this.end(id);
  }
}
