// Memory for parts on their way through this process. A part that is in memory as a whole costs the store a third of the work of a
// stream, and can be sent again without the client. There is only so much of it; whoever finds none streams, so that slow clients,
// which hold theirs for long, keep nobody waiting.
//
// Places come in a few sizes, each twice the one before, and are used again: memory of this size that comes and goes would
// leave holes in the process for as long as it lives. When none has come back for a while, those that are free are let go. A quarter of
// the memory is for large parts, which gain the most: a thousand small files at once do not take it.
import { collectAll } from './youngHeap.js';

const smallestPlaceBytes = 1_048_576;
const largePlaceBytes = 16 * 1_048_576;
const shareForLarge = 1 / 4;
/** Memory that comes and goes with every upload costs more than it saves. */
const defaultRestMs = 30_000;

export class PartMemory {
  readonly #free = new Map<number, Buffer[]>();
  readonly #totalBytes: number;
  readonly #restMs: number;
  #leftBytes: number;
  #rest: NodeJS.Timeout | undefined;

  constructor(totalBytes: number, restMs = defaultRestMs) {
    this.#totalBytes = totalBytes;
    this.#leftBytes = totalBytes;
    this.#restMs = restMs;
  }

  /** In use, or kept for the next one. */
  get heldBytes(): number {
    return this.#totalBytes - this.#leftBytes;
  }

  /** A place for so many bytes, or undefined. */
  take(bytes: number): Buffer | undefined {
    const size = placeSize(bytes);
    const used = this.#free.get(size)?.pop();
    if (used) return used;
    const kept = size < largePlaceBytes ? this.#totalBytes * shareForLarge : 0;
    if (size + kept > this.#leftBytes) this.#letGo(size, size + kept);
    if (size + kept > this.#leftBytes) return undefined;
    this.#leftBytes -= size;
    // Apart from Node's shared pool: it is kept and used again.
    return Buffer.allocUnsafeSlow(size);
  }

  giveBack(place: Buffer): void {
    const places = this.#free.get(place.length);
    if (places) places.push(place);
    else this.#free.set(place.length, [place]);
    if (this.#rest) this.#rest.refresh();
    else this.#rest = setTimeout(() => this.#letGoOfAll(), this.#restMs).unref();
  }

  #letGoOfAll(): void {
    const before = this.#leftBytes;
    for (const [size, places] of this.#free) this.#leftBytes += size * places.length;
    this.#free.clear();
    // When all of them are in use there is nothing to collect.
    if (this.#leftBytes > before) collectAll();
  }

  /** Places of other sizes that nobody uses make room, until so much is left. */
  #letGo(wanted: number, neededBytes: number): void {
    for (const [size, places] of this.#free) {
      while (size !== wanted && places.length > 0 && this.#leftBytes < neededBytes) {
        places.pop();
        this.#leftBytes += size;
      }
    }
  }
}

function placeSize(bytes: number): number {
  let size = smallestPlaceBytes;
  while (size < bytes) size *= 2;
  return size;
}
