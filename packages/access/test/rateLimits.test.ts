// Limits that hold, in memory that does not grow.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSluiceError, ManualClock } from '@sluice/base';
import { Buckets, RateLimits, type Principal } from '../src/index.js';

test('a bucket gives its burst at once, then its rate, and says how long to wait', async () => {
  const clock = new ManualClock();
  const buckets = new Buckets({ perSecond: 2, burst: 4, clock });
  assert.deepEqual(
    [1, 2, 3, 4].map(() => buckets.take('a')),
    [0, 0, 0, 0],
  );
  assert.equal(buckets.take('a'), 1);
  assert.equal(buckets.take('b'), 0);
  await clock.advance(500);
  assert.deepEqual([buckets.take('a'), buckets.take('a')], [0, 1]);
  await clock.advance(3_600_000);
  assert.deepEqual(
    [1, 2, 3, 4, 5].map(() => buckets.take('a')),
    [0, 0, 0, 0, 1],
  );
  const slow = new Buckets({ perSecond: 0.1, burst: 1, clock });
  assert.deepEqual([slow.take('a'), slow.take('a')], [0, 10]);
});

test('of too many names the one that was heard of longest ago is forgotten', () => {
  const buckets = new Buckets({ perSecond: 1, burst: 1, mostNames: 100, clock: new ManualClock() });
  buckets.take('kept');
  for (let index = 0; index < 10_000; index++) {
    buckets.take(`address ${index}`);
    assert.ok(buckets.take('kept') > 0);
  }
  assert.equal(buckets.size, 100);
});

test('an address that fails too often is told so; its IPv6 neighbours are the same machine', () => {
  const limits = new RateLimits({ failuresPerMinute: 3 });
  const code = (address: string): string | undefined => {
    try {
      limits.failure(address);
      return undefined;
    } catch (error) {
      return isSluiceError(error) ? error.code : String(error);
    }
  };
  assert.deepEqual(
    [1, 2, 3, 4].map(() => code('192.0.2.1')),
    [undefined, undefined, undefined, 'TOO_MANY_REQUESTS'],
  );
  assert.equal(code('192.0.2.2'), undefined);
  const neighbours = [1, 2, 3, 4].map((host) => code(`2001:db8:1:2:3:4:5:${host}`));
  assert.deepEqual(neighbours, [undefined, undefined, undefined, 'TOO_MANY_REQUESTS']);
  assert.equal(code('2001:db8:1:3::1'), undefined);
  const short = [1, 2, 3, 4].map((host) => code(`2001:db8::${host}`));
  assert.deepEqual(short, [undefined, undefined, undefined, 'TOO_MANY_REQUESTS']);
});

test('a key may ask so often and no more; 0 is any number', () => {
  const base: Principal = { tenant: 'acme', installation: false, role: 'viewer', via: 'key', rules: {} };
  const principal = { ...base, key: { id: 'k', name: 'k' } };
  const limits = new RateLimits({ keyPerSecond: 1 });
  limits.request(principal);
  limits.request(principal);
  assert.throws(
    () => limits.request(principal),
    (error) => isSluiceError(error, 'TOO_MANY_REQUESTS') && error.details?.['retryAfterS'] === 1,
  );
  const free = new RateLimits({ keyPerSecond: 0, failuresPerMinute: 0 });
  for (let index = 0; index < 10_000; index++) {
    free.request(principal);
    free.failure('192.0.2.1');
  }
});
