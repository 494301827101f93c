/*
 * The suite in miniature on a real Redis: every contender keeps the contract, and every measure yields a figure.
 * Nothing here judges speed.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { QueueBooth } from '../src/queue/booth.js';
import { openContender, SYSTEMS } from '../src/queue/contender.js';
import { BACKLOGS } from '../src/queue/growth.js';
import { payload, payloads } from '../src/queue/payload.js';
import { countTo } from '../src/queue/process.js';
import { toJson } from '../src/queue/report.js';
import { TINY } from '../src/queue/sizes.js';
import { measureCrowd, measureGrowth, measureQueue, MEASURES } from '../src/queue/suite.js';
import { startFreshRedis, type FreshRedis } from '../src/freshRedis.js';
import { until, withDeadline } from '../src/waiting.js';

const DEADLINE_MS = 10_000;
const HOUR_MS = 3_600_000;
const silent = (): void => {};

describe('the queue suite', () => {
  let redis: FreshRedis;
  before(async () => (redis = await startFreshRedis()));
  after(() => redis.stop());

  for (const system of SYSTEMS) {
    it(`${system} keeps the contract: what is added waits, is worked on once started, and is then gone`, async () => {
      await redis.reset();
      const contender = await openContender(system, redis.url);
      await contender.addMany(payloads(20));
      await contender.addOne(payload(20));
      await contender.addDelayed(payloads(5), HOUR_MS);
      assert.equal(await contender.unfinished(), 21);

      const tally = countTo(21);
      const worker = await contender.prepareWorker({ concurrency: 4, handler: tally.handler });
      assert.equal(await contender.unfinished(), 21, 'a prepared worker claims nothing');
      worker.start();
      await withDeadline(tally.reached, DEADLINE_MS, 'the handlers');
      await until(async () => (await contender.unfinished()) === 0, DEADLINE_MS, 'the acknowledgements');
      await worker.stop();
      await contender.close();
    });
  }

  it('every measure yields its figures, under the names of the JSON object', async () => {
    const findings = await measureQueue({
      redis,
      sizes: TINY,
      measures: MEASURES,
      systems: SYSTEMS,
      say: silent,
    });
    const json = toJson(findings) as Record<string, Record<string, number>>;
    const rates = ['enqueueBulk', 'enqueueBatches', 'enqueueSingle', 'process'];
    const costs = ['redisCpuMicrosPerJob', 'idleLatencyMs', 'bytesPerJob', 'growth'];
    assert.deepEqual(Object.keys(json), [...rates, ...costs]);
    for (const rate of rates) {
      assert.deepEqual(Object.keys(json[rate] ?? {}), ['sluice', 'bullmq', 'beequeue', 'ratio']);
      assert.ok(Object.values(json[rate] ?? {}).every((value) => value > 0));
    }
    assert.deepEqual(Object.keys(json['growth'] ?? {}), [...BACKLOGS]);
    assert.ok(Number(json['bytesPerJob']) > 180);
    assert.ok((findings.idleCommands?.sluice ?? -1) >= 0);
  });

  it('growth and idle workers are measured the same way on a peer', async () => {
    const booth = new QueueBooth('bullmq', redis.url);
    const growth = await measureGrowth(booth, { redis, sizes: TINY, say: silent });
    assert.ok(BACKLOGS.every((backlog) => (growth[backlog][0] ?? 0) > 0));
    const crowd = await measureCrowd(booth, 'bullmq', { redis, sizes: TINY });
    assert.ok((crowd.alone[0] ?? 0) > 0 && (crowd.crowded[0] ?? 0) > 0);
    await booth.close();
  });

  it('a turn that fails is an error that names the system and the turn', async () => {
    const booth = new QueueBooth('beequeue', 'redis://127.0.0.1:1');
    await assert.rejects(
      booth.take({ kind: 'enqueueBulk', jobs: 1, warmUpJobs: 1 }),
      /enqueueBulk on beequeue: /,
    );
    await booth.close();
  });

  it('a reset leaves nothing of the previous system in Redis', async () => {
    const contender = await openContender('beequeue', redis.url);
    const before = await redis.usedBytes();
    await contender.addMany(payloads(5_000));
    await contender.close();
    await redis.reset();
    assert.ok((await redis.usedBytes()) - before < 500_000);
  });

  it('a name that --only does not know is refused', () => {
    const program = fileURLToPath(new URL('../src/main.js', import.meta.url));
    const { status, stderr } = spawnSync(process.execPath, [program, 'queue', '--only', 'nothing'], {
      encoding: 'utf8',
    });
    assert.equal(status, 1);
    assert.match(stderr, /BAD_COMMAND_LINE.*nothing/);
  });
});
