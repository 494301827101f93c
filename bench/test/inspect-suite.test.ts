/*
 * The inspect suite in miniature: every measure yields its figures. Nothing here judges speed.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startFreshRedis, type FreshRedis } from '../src/freshRedis.js';
import { toJson, toTable } from '../src/inspect/report.js';
import { TINY } from '../src/inspect/sizes.js';
import { measureInspect, MEASURES } from '../src/inspect/suite.js';

describe('the inspect suite', () => {
  let redis: FreshRedis;
  before(async () => (redis = await startFreshRedis()));
  after(() => redis.stop());

  it('every measure of inspect yields its figures, under the names of the JSON object', async () => {
    const findings = await measureInspect(redis, TINY, MEASURES, () => {});
    const figures = toJson(findings);
    assert.deepEqual(Object.keys(figures), [
      ...['samplerShare', 'lookMs', 'lookAloneMs', 'lookAloneTenViewersMs', 'commandsPerLook'],
      ...['commandsPerLookTenViewers', 'tenViewersTimes', 'callsPerLook', 'loadShare'],
      ...['deadGroupsMs', 'deadGroupsFirstMs', 'causes'],
    ]);
    assert.equal(figures.causes, 20);
    assert.match(toTable(findings, TINY), /error groups of 200 dead letters/);
  });
});
