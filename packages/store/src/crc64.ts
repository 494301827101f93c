// CRC-64/NVME: the checksum of whole objects in S3, and the reason why parts can be checked as they come: the checksum of a
// whole is combined from those of its parts without reading a byte again.
//
// Bytes go through compiled code (`crc64Bytes.ts`); combining is written here.
//
// A CRC is a polynomial over GF(2), and appending n bytes multiplies it by x^(8n) modulo the generator. The powers x^(2^k) are
// computed once; x^(8n) is a product of some of them, and is remembered per n because parts mostly have one size. Polynomials
// are kept as two 32-bit halves, in the reflected order of this CRC (the highest bit is x^0): a BigInt in the inner loop would
// be some thirty times slower.
import { extend } from './crc64Bytes.js';

interface Polynomial {
  high: number;
  low: number;
}

const GENERATOR: Polynomial = { high: 0x9a6c9329, low: 0xac4bc9b5 };
const ONE: Polynomial = { high: 0x80000000, low: 0 };
const X: Polynomial = { high: 0x40000000, low: 0 };
/** A length has at most 53 bits, and a byte is 2^3 bits. */
const POWER_COUNT = 56;
const BITS_PER_BYTE_LOG2 = 3;
const MAX_REMEMBERED_LENGTHS = 1_024;
const LOW_HALF = 0xffffffffn;

/** The checksum of bytes; with `previous`, of everything before and these. */
export function crc64(data: Uint8Array, previous = 0n): bigint {
  state.writeBigUInt64LE(previous);
  extend(state, toBuffer(data));
  return state.readBigUInt64LE();
}

/** Of the call under way; it never lasts. */
const state = Buffer.alloc(8);

/** A checksum that grows with its bytes. */
export class RunningCrc64 {
  readonly #state = Buffer.alloc(8);

  update(data: Uint8Array): void {
    extend(this.#state, toBuffer(data));
  }

  get value(): bigint {
    return this.#state.readBigUInt64LE();
  }
}

/** The checksum of A followed by B, from the checksums of both and the length of B. */
export function combineCrc64(crcA: bigint, crcB: bigint, lengthB: number): bigint {
  if (!Number.isSafeInteger(lengthB) || lengthB < 0) throw new RangeError(`not a length: ${lengthB}`);
  if (lengthB === 0) return crcA;
  return toBigInt(multiply(powerForBytes(lengthB), toPolynomial(crcA))) ^ crcB;
}

/** As S3 writes it: eight bytes, the highest first, in base64. */
export function crc64ToBase64(crc: bigint): string {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(crc);
  return bytes.toString('base64');
}

/** Undefined for what is no CRC-64: a store may answer with a composite checksum, `…-3`, or with nonsense. */
export function crc64FromBase64(text: string | undefined): bigint | undefined {
  if (text === undefined || !/^[A-Za-z0-9+/]{11}=$/.test(text)) return undefined;
  return Buffer.from(text, 'base64').readBigUInt64BE();
}

export function crc64ToHex(crc: bigint): string {
  return crc.toString(16).padStart(16, '0');
}

export function crc64FromHex(text: string): bigint | undefined {
  return /^[0-9a-f]{16}$/i.test(text) ? BigInt(`0x${text}`) : undefined;
}

const powers: Polynomial[] = [X];
while (powers.length < POWER_COUNT) powers.push(multiply(powers.at(-1)!, powers.at(-1)!));

const rememberedPowers = new Map<number, Polynomial>();

/** x^(8 · length) modulo the generator. */
function powerForBytes(length: number): Polynomial {
  const remembered = rememberedPowers.get(length);
  if (remembered !== undefined) return remembered;
  let product = ONE;
  for (let left = length, k = BITS_PER_BYTE_LOG2; left > 0; left = Math.floor(left / 2), k++) {
    if (left % 2 === 1) product = multiply(powers[k]!, product);
  }
  if (rememberedPowers.size === MAX_REMEMBERED_LENGTHS) rememberedPowers.clear();
  rememberedPowers.set(length, product);
  return product;
}

/** The product of two polynomials modulo the generator: for each power of x in `a`, add `b` times that power. */
function multiply(a: Polynomial, b: Polynomial): Polynomial {
  let { high, low } = b;
  let sumHigh = 0;
  let sumLow = 0;
  for (let power = 0; power < 64; power++) {
    const bit = power < 32 ? a.high >>> (31 - power) : a.low >>> (63 - power);
    if ((bit & 1) === 1) {
      sumHigh ^= high;
      sumLow ^= low;
    }
    // Times x: one to the right, and what falls off the end is reduced by the generator.
    const fallsOff = low & 1;
    low = (low >>> 1) | (high << 31);
    high >>>= 1;
    if (fallsOff === 1) {
      high ^= GENERATOR.high;
      low ^= GENERATOR.low;
    }
  }
  return { high: sumHigh >>> 0, low: sumLow >>> 0 };
}

function toPolynomial(crc: bigint): Polynomial {
  return { high: Number(crc >> 32n), low: Number(crc & LOW_HALF) };
}

function toBigInt({ high, low }: Polynomial): bigint {
  return (BigInt(high) << 32n) | BigInt(low);
}

/** The same bytes, not a copy. */
function toBuffer(data: Uint8Array): Buffer {
  return Buffer.isBuffer(data) ? data : Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}
