// The newest frames of this process, so that a part that is put together where its chunks were received need not be read from Redis
// again. What counts is what Redis has; this only saves the way back.
//
// They are copies, in slots that are used again: a mebibyte of memory that lives for a second and is then left to the garbage
// collector makes it look through the whole heap, several times a second. A slot belongs to whoever holds it: to this memory until
// it is taken, then to the taker until it is released.

export interface Slot {
  readonly memory: ArrayBuffer;
  /** The frame, in this memory. */
  readonly bytes: Buffer;
}

export class RecentFrames {
  readonly #most: number;
  readonly #slotBytes: number;
  /** By key, the oldest first. */
  readonly #held = new Map<string, Slot>();
  readonly #free: ArrayBuffer[] = [];
  #taken = 0;

  /** At most so many slots, of so many bytes each. */
  constructor(most: number, slotBytes: number) {
    this.#most = most;
    this.#slotBytes = slotBytes;
  }

  remember(key: string, frame: Buffer): void {
    this.forget(key);
    const [oldest] = this.#held.keys();
    if (this.#held.size + this.#taken >= this.#most) {
      if (oldest === undefined) return;
      this.forget(oldest);
    }
    const memory = this.#free.pop() ?? new ArrayBuffer(this.#slotBytes);
    const bytes = Buffer.from(memory, 0, frame.length);
    frame.copy(bytes);
    this.#held.set(key, { memory, bytes });
  }

  forget(key: string): void {
    const slot = this.take(key);
    if (slot) this.release(slot, true);
  }

  /** The frame, if it is here. It is the caller's then, and must be released. */
  take(key: string): Slot | undefined {
    const slot = this.#held.get(key);
    if (!slot) return undefined;
    this.#held.delete(key);
    this.#taken++;
    return slot;
  }

  /** `unread` says that certainly nobody reads from it any more; otherwise its memory is left to the garbage collector. */
  release({ memory }: Slot, unread: boolean): void {
    this.#taken--;
    if (unread) this.#free.push(memory);
  }
}
