/*
 * The arithmetic and the shapes: what is printed must be what was measured.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { payload, payloads, PAYLOAD_BYTES } from '../src/queue/payload.js';
import { toJson, toSpreads, toTable, type Findings } from '../src/queue/report.js';
import { median, percentile } from '../src/statistics.js';
import { inLanes, withDeadline } from '../src/waiting.js';

const FINDINGS: Findings = {
  rates: {
    enqueueBulk: {
      sluice: [400_000, 380_000, 500_000],
      bullmq: [20_000, 19_000, 21_000],
      beequeue: [30_000],
    },
    process: { sluice: [100_000], bullmq: [10_000] },
  },
  redisCpuMicrosPerJob: { sluice: [5, 6, 7], bullmq: [90, 100, 110], beequeue: [50] },
  idleLatencyMs: { sluice: [1, 2, 3] },
  bytesPerJob: { sluice: 290.04, bullmq: 827 },
  growth: { waiting10k: [100_000], waiting1m: [95_000], active50k: [70_000], delayed100k: [99_000] },
  idleCommands: { sluice: 0.5 },
  idleWorkers: { alone: [100_000], crowded: [99_000] },
};

describe('figures', () => {
  it('every payload is a JSON object of exactly 180 bytes, and no two are the same', () => {
    for (const index of [0, 1, 999_999, 1_050_000]) {
      assert.equal(Buffer.byteLength(JSON.stringify(payload(index))), PAYLOAD_BYTES);
    }
    assert.equal(new Set(payloads(1_000, 500).map((one) => JSON.stringify(one))).size, 1_000);
  });

  it('the median lies between the two middle values and percentiles interpolate', () => {
    assert.equal(median([3, 1, 2]), 2);
    assert.equal(median([4, 1, 2, 3]), 2.5);
    assert.equal(percentile([0, 10], 99), 9.9);
    assert.ok(Number.isNaN(median([])));
  });

  it('the JSON object has medians, and ratios of Sluice to BullMQ', () => {
    assert.deepEqual(toJson(FINDINGS), {
      enqueueBulk: { sluice: 400_000, bullmq: 20_000, beequeue: 30_000, ratio: 20 },
      process: { sluice: 100_000, bullmq: 10_000, beequeue: null, ratio: 10 },
      redisCpuMicrosPerJob: { sluice: 6, bullmq: 100 },
      idleLatencyMs: { p50: 2, p99: 2.98 },
      bytesPerJob: 290,
      growth: { waiting10k: 100_000, waiting1m: 95_000, active50k: 70_000, delayed100k: 99_000 },
    });
  });

  it('the table shows the spread and says which goals were missed', () => {
    const lines = toTable(FINDINGS).split('\n');
    const line = (start: string): string => lines.find((one) => one.startsWith(start)) ?? '';
    assert.match(line('add: one bulk call'), /400,000 \(380,000–500,000\).*20\.0×.*\bmet$/);
    assert.match(line('process, concurrency 100'), /10\.0×.*MISSED$/);
    assert.match(line('memory per waiting job'), /110 .*647.*met$/);
    assert.match(line('process beside 50,000 active'), /0\.70.*MISSED$/);
  });

  it('a saved result carries the smallest and the largest round', () => {
    const spreads = toSpreads(FINDINGS) as { enqueueBulk: { sluice: unknown } };
    assert.deepEqual(spreads.enqueueBulk.sluice, { min: 380_000, max: 500_000 });
  });

  it('lanes keep exactly their number of calls in flight and miss no task', async () => {
    let inFlight = 0;
    let most = 0;
    const seen = new Set<number>();
    await inLanes(4, 50, async (index) => {
      most = Math.max(most, ++inFlight);
      seen.add(index);
      await new Promise(setImmediate);
      inFlight -= 1;
    });
    assert.equal(most, 4);
    assert.equal(seen.size, 50);
  });

  it('a measurement that hangs ends with TIMED_OUT', async () => {
    await assert.rejects(withDeadline(new Promise(() => {}), 10, 'nothing'), { code: 'TIMED_OUT' });
  });
});
