/** Bodies are read in order, to the byte, and without waking the great garbage collector. */
import assert from 'node:assert/strict';
import { constants, PerformanceObserver, type PerformanceEntry } from 'node:perf_hooks';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import { BodyReader } from '../src/body.js';

const patienceMs = 30_000;

async function* pieces(...texts: string[]): AsyncGenerator<Buffer> {
  for (const text of texts) yield Buffer.from(text);
}

test('a body is handed out in the portions that are asked for', async () => {
  const body = new BodyReader(pieces('abc', '', 'defgh', 'i'), patienceMs);
  const buffer = Buffer.alloc(5);
  assert.equal(String(await body.next(2)), 'ab');
  assert.equal(await body.fill(buffer), 5);
  assert.equal(String(buffer), 'cdefg');
  assert.equal(String(await body.take(2)), 'hi');
  assert.equal(body.read, 9);
  await body.expectEnd(9);
  body.close();
});

test('a body that ends early says how far it went, and one that breaks says why', async () => {
  const short = new BodyReader(pieces('abc'), patienceMs);
  await assert.rejects(short.take(4), { code: 'BODY_TRUNCATED' });
  short.close();

  const source = new Readable({ read() {} });
  const broken = new BodyReader(source, patienceMs);
  source.push('ab');
  const filling = broken.fill(Buffer.alloc(4));
  source.destroy(new Error('cut'));
  await assert.rejects(filling, /cut/);
  await assert.rejects(broken.next(1), /cut/);
  broken.close();

  const gone = new Readable({ read() {} });
  gone.destroy();
  await sleep(0);
  const late = new BodyReader(gone, patienceMs);
  await assert.rejects(late.next(1), /broke off/);
  late.close();
});

test('nothing is taken from a source before somebody asks, nor while nobody does', async () => {
  let given = 0;
  let flowed = 0;
  const source = new Readable({
    highWaterMark: 1,
    read() {
      this.push(Buffer.alloc(1_000, ++given));
    },
  });
  source.on('resume', () => flowed++);
  const body = new BodyReader(source, patienceMs);
  await sleep(20);
  assert.equal(flowed, 0);
  assert.equal((await body.next(10))!.length, 10);
  const after = given;
  await sleep(20);
  assert.ok(given <= after + 1, `${given - after} more were read`);
  body.close();
  source.destroy();
});

test('a body that brings nothing while it is waited for is slow; one that is not waited for is not', async () => {
  const source = new Readable({ read() {} });
  const body = new BodyReader(source, 50);
  source.push('ab');
  assert.equal(String(await body.next(2)), 'ab');
  await sleep(200);
  source.push('c');
  assert.equal(String(await body.next(1)), 'c');
  // Its own watch keeps no process alive.
  const awake = setInterval(() => {}, 1_000);
  await assert.rejects(body.next(1), { code: 'BODY_SLOW' });
  clearInterval(awake);
  body.close();
  source.destroy();
});

test('a large body does not make V8 collect its whole heap again and again', async () => {
  const all: PerformanceEntry[] = [];
  const observer = new PerformanceObserver((list) => all.push(...list.getEntries()));
  observer.observe({ entryTypes: ['gc'] });
  const pieceBytes = 65_536;
  const count = 16_384;
  async function* large(): AsyncGenerator<Buffer> {
    for (let n = 0; n < count; n++) yield Buffer.allocUnsafeSlow(pieceBytes);
  }
  const body = new BodyReader(large(), patienceMs);
  const place = Buffer.allocUnsafeSlow(32 * pieceBytes);
  for (let left = count; left > 0; left -= 32) assert.equal(await body.fill(place), place.length);
  body.close();
  await sleep(10);
  observer.disconnect();
  const isWhole = (entry: PerformanceEntry): boolean =>
    (entry as PerformanceEntry & { detail: { kind: number } }).detail.kind ===
    constants.NODE_PERFORMANCE_GC_MAJOR;
  const whole = all.filter(isWhole).length;
  // A gibibyte of buffers: without sweeps there are sixteen and more.
  assert.ok(whole <= 6, `${whole} collections of the whole heap`);
});
