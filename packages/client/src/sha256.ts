/**
 * SHA-256 in plain JavaScript, piece by piece (FIPS 180-4). The digest of Web Crypto wants all bytes at once, and is missing
 * on pages that were not loaded over https; this one serves files that do not fit into memory, and those pages.
 */
export interface Hasher {
  update(bytes: Uint8Array): void;
  digest(): Uint8Array<ArrayBuffer>;
}

const BLOCK_BYTES = 64;
const LENGTH_BYTES = 8;

const roundConstants = new Int32Array(64);
const firstState = new Int32Array(8);
for (let candidate = 2, found = 0; found < 64; candidate += 1) {
  if (!isPrime(candidate)) continue;
  if (found < 8) firstState[found] = fractionBits(Math.sqrt(candidate));
  roundConstants[found++] = fractionBits(Math.cbrt(candidate));
}

export class Sha256 implements Hasher {
  readonly #state = firstState.slice();
  readonly #words = new Int32Array(64);
  readonly #block = new Uint8Array(BLOCK_BYTES);
  #filled = 0;
  #totalBytes = 0;

  update(bytes: Uint8Array): void {
    this.#totalBytes += bytes.length;
    let at = 0;
    if (this.#filled > 0) {
      at = Math.min(BLOCK_BYTES - this.#filled, bytes.length);
      this.#block.set(bytes.subarray(0, at), this.#filled);
      this.#filled += at;
      if (this.#filled < BLOCK_BYTES) return;
      this.#compress(this.#block, 0);
      this.#filled = 0;
    }
    for (; at + BLOCK_BYTES <= bytes.length; at += BLOCK_BYTES) this.#compress(bytes, at);
    this.#block.set(bytes.subarray(at));
    this.#filled = bytes.length - at;
  }

  /** Ends the computation; the hasher is of no further use. */
  digest(): Uint8Array<ArrayBuffer> {
    const bits = BigInt(this.#totalBytes) * 8n;
    const spare = BLOCK_BYTES - this.#filled;
    const padding = new Uint8Array(spare > LENGTH_BYTES ? spare : spare + BLOCK_BYTES);
    padding[0] = 0x80;
    new DataView(padding.buffer).setBigUint64(padding.length - LENGTH_BYTES, bits);
    this.update(padding);
    const out = new DataView(new ArrayBuffer(32));
    for (const [index, word] of this.#state.entries()) out.setInt32(index * 4, word);
    return new Uint8Array(out.buffer);
  }

  #compress(bytes: Uint8Array, at: number): void {
    const w = this.#words;
    const s = this.#state;
    for (let i = 0; i < 16; i++, at += 4) {
      w[i] = (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
    }
    for (let i = 16; i < 64; i++) {
      const x = w[i - 15]!;
      const y = w[i - 2]!;
      const low = turn(x, 7) ^ turn(x, 18) ^ (x >>> 3);
      const high = turn(y, 17) ^ turn(y, 19) ^ (y >>> 10);
      w[i] = (w[i - 16]! + low + w[i - 7]! + high) | 0;
    }
    let a = s[0]!;
    let b = s[1]!;
    let c = s[2]!;
    let d = s[3]!;
    let e = s[4]!;
    let f = s[5]!;
    let g = s[6]!;
    let h = s[7]!;
    // Plain assignments: shorter ways to write the same cost a factor of ten.
    for (let i = 0; i < 64; i++) {
      const choice = (e & f) ^ (~e & g);
      const t1 = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + choice + roundConstants[i]! + w[i]!) | 0;
      const majority = (a & b) ^ (a & c) ^ (b & c);
      const t2 = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + majority) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    s[0]! += a;
    s[1]! += b;
    s[2]! += c;
    s[3]! += d;
    s[4]! += e;
    s[5]! += f;
    s[6]! += g;
    s[7]! += h;
  }
}

function turn(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by));
}

function fractionBits(root: number): number {
  return ((root - Math.floor(root)) * 2 ** 32) | 0;
}

function isPrime(candidate: number): boolean {
  for (let divisor = 2; divisor * divisor <= candidate; divisor++)
    if (candidate % divisor === 0) return false;
  return true;
}
