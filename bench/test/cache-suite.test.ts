/*
 * The cache suite in miniature: every system keeps the contract, and every measure yields its figures. Nothing here judges speed.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { openContender, SYSTEMS } from '../src/cache/contender.js';
import { toJson, toTable } from '../src/cache/report.js';
import { TINY } from '../src/cache/sizes.js';
import { measureCache, MEASURES } from '../src/cache/suite.js';
import { startFreshRedis, type FreshRedis } from '../src/freshRedis.js';

describe('the cache suite', () => {
  let redis: FreshRedis;
  before(async () => (redis = await startFreshRedis()));
  after(() => redis.stop());

  for (const system of [...SYSTEMS, 'raw'] as const) {
    it(`${system} keeps the contract: what was loaded is read, and loaded again after an invalidation`, async () => {
      await redis.reset();
      let loads = 0;
      const load = async (key: string): Promise<unknown> => ({ key, load: ++loads });
      const cache = await openContender(system, { url: redis.url, near: false, load, patienceMs: 10_000 });
      assert.deepEqual(await cache.get('a'), { key: 'a', load: 1 });
      assert.deepEqual(await cache.get('a'), { key: 'a', load: 1 });
      assert.deepEqual(
        await cache.getMany(['a', 'a']),
        Array.from({ length: 2 }, () => ({ key: 'a', load: 1 })),
      );
      await cache.invalidate('a');
      assert.deepEqual(await cache.get('a'), { key: 'a', load: 2 });
      await cache.close();
    });
  }

  it('every measure yields its figures, under the names of the JSON object', async () => {
    const findings = await measureCache({
      redis,
      sizes: TINY,
      measures: MEASURES,
      systems: SYSTEMS,
      say: () => {},
    });
    const json = toJson(findings) as Record<string, Record<string, number | null>>;
    const names = ['nearHitNs', 'redisHitUs', 'getManyUs', 'stampedeLoads', 'staleAfterInvalidate'];
    assert.deepEqual(Object.keys(json), [...names, 'redisDownMs', 'redisStoppedMs']);
    for (const [name, figures] of Object.entries(json)) {
      assert.deepEqual(Object.keys(figures), [...SYSTEMS, ...(name === 'redisHitUs' ? ['raw'] : [])]);
      for (const figure of Object.values(figures)) assert.ok(typeof figure === 'number' && figure >= 0, name);
    }
    assert.equal(json['staleAfterInvalidate']!['sluice'], 0);
    assert.match(toTable(findings, TINY), /getMany/);
  });
});
