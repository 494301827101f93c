// The files of a run: how large, how they are sent, and what their client does on the way. Bytes follow from the key of the file, so
// that anybody can compute them again.
import { createCipheriv, createHash } from 'node:crypto';
import type { Random } from '@sluice/testbed/random';

const mebibyte = 1_048_576;
/** Of the store: the smallest part, and the one that is preferred. */
const smallestPartBytes = 5 * mebibyte;
const preferredPartBytes = 8 * mebibyte;
const sharedPaths = 6;

export interface Shape {
  /** `chunks` have numbers, `ranges` have offsets, `whole` is one request. */
  by: 'chunks' | 'ranges' | 'whole';
  /** What one request brings; chunks may have it as their fixed size. */
  pieceBytes: number;
  fixedChunks: boolean;
  knownSize: boolean;
  /** Each request carries a digest of its bytes. */
  digests: boolean;
  /** The digest of the file is declared at the beginning. */
  declares: boolean;
  /** Sends some pieces twice, at once. */
  repeats: boolean;
  /** Sends other bytes for a chunk that is there already. */
  forges: boolean;
  /** What the client does when about half is sent. */
  halfway: 'goes on' | 'cancels' | 'walks away' | 'rests';
}

export interface File {
  key: string;
  path: string;
  size: number;
  shape: Shape;
}

type Mix = [weight: number, size: (random: Random) => number, shape: (random: Random) => Partial<Shape>][];

const plain: Shape = {
  by: 'chunks',
  pieceBytes: mebibyte,
  fixedChunks: true,
  knownSize: true,
  digests: false,
  declares: false,
  repeats: false,
  forges: false,
  halfway: 'goes on',
};

const mix: Mix = [
  // One request: small, empty, piped, and too large for one object at once.
  [5, (random) => random.between(1, 300_000), () => ({ by: 'whole' })],
  [1, () => 0, (random) => ({ by: random.pick(['whole', 'chunks'] as const) })],
  [2, (random) => random.between(1, 2 * mebibyte), () => ({ by: 'whole', knownSize: false })],
  [1, (random) => preferredPartBytes + random.between(1, 3 * mebibyte), () => ({ by: 'whole' })],
  // Chunks that are less than a part: they are buffered first.
  [4, (random) => random.between(1, 900_000), (random) => ({ pieceBytes: random.between(50_000, 300_000) })],
  [3, (random) => random.between(2, 10) * mebibyte + 7, () => ({ pieceBytes: 1_500_000 })],
  [2, (random) => random.between(100_000, 3_000_000), () => ({ knownSize: false, pieceBytes: 400_000 })],
  [
    2,
    (random) => random.between(100_000, 3_000_000),
    () => ({ knownSize: false, fixedChunks: false, pieceBytes: 350_000 }),
  ],
  // Chunks that are parts: they go straight to the store.
  [
    2,
    (random) => smallestPartBytes * 2 + random.between(0, mebibyte),
    () => ({ pieceBytes: smallestPartBytes }),
  ],
  // Ranges, some of which cross the ends of parts.
  [
    3,
    (random) => random.between(1, 11) * mebibyte + 13,
    (random) => ({ by: 'ranges', pieceBytes: random.between(1, 4) * 1_000_000 }),
  ],
  [1, (random) => random.between(9, 12) * mebibyte, () => ({ by: 'ranges', pieceBytes: preferredPartBytes })],
];

/** The same generator draws the same files. */
export function drawFile(random: Random, key: string, repeatShare: number): File {
  const weights = mix.reduce((sum, [weight]) => sum + weight, 0);
  let ticket = random.between(1, weights);
  const [, size, part] = mix.find(([weight]) => (ticket -= weight) <= 0)!;
  const shape: Shape = { ...plain, ...part(random) };
  shape.digests = random.chance(0.4);
  shape.declares = random.chance(0.3);
  if (shape.by !== 'whole') {
    shape.repeats = random.chance(repeatShare);
    const turn = random.next();
    shape.halfway = turn < 0.08 ? 'cancels' : turn < 0.16 ? 'walks away' : turn < 0.26 ? 'rests' : 'goes on';
    // A forged chunk may be taken for the true one if Redis has lost that: the digest of the file tells them apart.
    shape.forges = shape.by === 'chunks' && shape.fixedChunks && random.chance(0.15);
    if (shape.forges) shape.declares = true;
  }
  const path = random.chance(0.15)
    ? `shared/${random.between(1, sharedPaths)}.bin`
    : `${key.split('-')[0]}/${key}.bin`;
  return { key, path, size: size(random), shape };
}

export function bytesOf({ key, size }: Pick<File, 'key' | 'size'>): Buffer {
  const secret = createHash('sha256').update(key).digest();
  return createCipheriv('aes-256-ctr', secret, Buffer.alloc(16)).update(Buffer.alloc(size));
}

export function sha256Of(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
