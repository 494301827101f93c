/** CRC-64/NVME: its check value, who computes it, its combination, its spellings. */
import assert from 'node:assert/strict';
import { randomBytes, randomInt } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadAwsCrt, loadCompiled, type Extend } from '../src/crc64Bytes.js';
import {
  combineCrc64,
  crc64,
  crc64FromBase64,
  crc64FromHex,
  crc64ToBase64,
  crc64ToHex,
  RunningCrc64,
} from '../src/index.js';

const CHECK_VALUE = 0xae8b14860a799888n;

test('CRC-64/NVME of "123456789" is the published check value', () => {
  assert.equal(crc64(Buffer.from('123456789')), CHECK_VALUE);
  assert.equal(crc64(new Uint8Array(0)), 0n);
});

const compiled = loadCompiled();
const isFor = process.arch === 'x64' && process.platform === 'linux';
const skip = isFor && compiled === undefined && 'there is no C compiler';

test('whoever computes it, it is what the definition says, for every length and place', { skip }, () => {
  const ways = [loadAwsCrt(), ...(compiled ? [compiled] : [])];
  const lengths = [...Array.from({ length: 300 }, (_, length) => length), 4_096, 65_536, 100_003];
  for (const length of lengths) {
    const place = randomInt(0, 17);
    const bytes = randomBytes(place + length).subarray(place);
    const before = randomBytes(8);
    const expected = byDefinition(before.readBigUInt64LE(), bytes);
    for (const way of ways) assert.equal(after(way, before, bytes), expected, `${length} bytes`);
  }
});

/** Bit by bit, the lowest first. */
function byDefinition(before: bigint, bytes: Uint8Array): bigint {
  const all = 0xffffffffffffffffn;
  let remainder = before ^ all;
  for (const byte of bytes) {
    remainder ^= BigInt(byte);
    for (let bit = 0; bit < 8; bit++)
      remainder = (remainder >> 1n) ^ ((remainder & 1n) === 1n ? 0x9a6c9329ac4bc9b5n : 0n);
  }
  return remainder ^ all;
}

function after(way: Extend, before: Buffer, bytes: Buffer): bigint {
  const state = Buffer.from(before);
  way(state, bytes);
  return state.readBigUInt64LE();
}

test('compiled code that is missing, broken or wrong is passed over', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-crc64-'));
  try {
    const file = (name: string, text: string): string => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    };
    assert.equal(loadCompiled(join(folder, 'missing.node')), undefined);
    assert.equal(loadCompiled(file('broken.node', 'no machine code')), undefined);
    assert.equal(loadCompiled(file('empty.cjs', '')), undefined);
    assert.equal(loadCompiled(file('wrong.cjs', 'exports.extend = (state) => state.fill(1);')), undefined);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

if (isFor) {
  test('compiled code refuses what are no bytes', { skip }, () => {
    const bad: [unknown, unknown][] = [
      [Buffer.alloc(8), 'text'],
      [Buffer.alloc(7), Buffer.alloc(1)],
      [undefined, Buffer.alloc(1)],
    ];
    for (const [state, bytes] of bad) {
      assert.throws(() => compiled!(state as Buffer, bytes as Buffer), /takes a state of eight bytes/);
    }
    assert.throws(() => (compiled as unknown as () => void)(), /takes a state of eight bytes/);
  });
}

test('a view into a larger buffer has the checksum of its own bytes', () => {
  const padded = new Uint8Array(Buffer.from('xx123456789yy'));
  assert.equal(crc64(padded.subarray(2, 11)), CHECK_VALUE);
});

test('a checksum that grows is that of the whole', () => {
  const running = new RunningCrc64();
  for (const piece of ['', '1234', '', '56789']) running.update(Buffer.from(piece));
  assert.equal(running.value, CHECK_VALUE);
  assert.equal(crc64(Buffer.from('6789'), crc64(Buffer.from('12345'))), CHECK_VALUE);
});

test('checksums of two pieces combine to that of both, wherever they were cut', () => {
  for (let round = 0; round < 300; round++) {
    const whole = randomBytes(randomInt(0, 5_000));
    const cut = randomInt(0, whole.length + 1);
    const [a, b] = [whole.subarray(0, cut), whole.subarray(cut)];
    assert.equal(combineCrc64(crc64(a), crc64(b), b.length), crc64(whole), `${whole.length} cut at ${cut}`);
  }
});

test('an empty piece on either side changes nothing', () => {
  const crc = crc64(Buffer.from('bytes'));
  assert.equal(combineCrc64(crc, 0n, 0), crc);
  assert.equal(combineCrc64(0n, crc, 5), crc);
  assert.equal(combineCrc64(0n, 0n, 0), 0n);
});

test('lengths beyond 32 bits combine: many pieces in one step or one by one', () => {
  const piece = crc64(Buffer.alloc(1_000, 1));
  let doubled = piece;
  let length = 1_000;
  const first = crc64(Buffer.from('first'));
  let stepwise = combineCrc64(first, piece, 1_000);
  // After k doublings, `doubled` stands for 2^k pieces; the other way appends the same pieces to something else.
  for (let k = 0; k < 24; k++) {
    stepwise = combineCrc64(stepwise, doubled, length);
    doubled = combineCrc64(doubled, doubled, length);
    length *= 2;
  }
  assert.ok(length > 2 ** 33);
  assert.equal(stepwise, combineCrc64(first, doubled, length));
});

test('what is no length is refused', () => {
  for (const length of [-1, 0.5, NaN, 2 ** 53]) assert.throws(() => combineCrc64(1n, 1n, length), RangeError);
});

test('base64 and hex go there and back, and nonsense is nothing', () => {
  for (const crc of [0n, 1n, CHECK_VALUE, 2n ** 64n - 1n]) {
    assert.equal(crc64FromBase64(crc64ToBase64(crc)), crc);
    assert.equal(crc64FromHex(crc64ToHex(crc)), crc);
  }
  assert.equal(crc64ToBase64(CHECK_VALUE), 'rosUhgp5mIg=');
  assert.equal(crc64ToHex(1n), '0000000000000001');
  for (const text of [undefined, '', 'rosUhgp5mIg', 'rosUhgp5mIg=-3', 'AAAA', '!!!!!!!!!!!=']) {
    assert.equal(crc64FromBase64(text), undefined);
  }
  for (const text of ['', 'xyz', '1', `${'0'.repeat(16)}1`]) assert.equal(crc64FromHex(text), undefined);
});
