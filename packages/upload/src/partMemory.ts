// Memory for parts on their way through this process. A part that is in memory as a whole costs the store a third of the work of a
// stream, and can be sent again without the client. There are only so many places; whoever finds none streams, so that slow
// clients, which hold theirs for long, keep nobody waiting.

export class PartMemory {
  readonly #partBytes: number;
  readonly #free: Buffer[] = [];
  #left: number;

  constructor(totalBytes: number, partBytes: number) {
    this.#partBytes = partBytes;
    this.#left = Math.floor(totalBytes / partBytes);
  }

  /** A place for so many bytes, or undefined. */
  take(bytes: number): Buffer | undefined {
    if (bytes > this.#partBytes) return undefined;
    const used = this.#free.pop();
    if (used) return used;
    if (this.#left === 0) return undefined;
    this.#left -= 1;
    // Apart from Node's shared pool: it is kept for as long as the process lives.
    return Buffer.allocUnsafeSlow(this.#partBytes);
  }

  giveBack(place: Buffer): void {
    this.#free.push(place);
  }
}
