/*
 * The arithmetic and the shapes of the uploads suite: what is printed must be what was measured.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { cpuSeconds, residentBytes } from '../src/processCost.js';
import { summarise } from '../src/uploads/memoryWatch.js';
import { toJson, toSpreads, toTable, type Findings } from '../src/uploads/report.js';
import { FULL, QUICK, SCENARIOS } from '../src/uploads/sizes.js';
import { chunksOf, Tape } from '../src/uploads/tape.js';

const MIB = 2 ** 20;
const BURN_CPU_SECONDS = 0.2;

const FINDINGS: Findings = {
  rates: {
    large: { sluice: [180, 160, 200], tus: [100, 90, 110], direct: [200] },
    smallChunks: { sluice: [40], tus: [10] },
    smallFiles: { tus: [50], direct: [400] },
  },
  cpuSecondsPerGib: { large: { sluice: [4, 5, 6], tus: [11, 10, 12] } },
  redisCpuSecondsPerGib: { large: { sluice: [0.25] } },
  s3CallsPerFile: {
    large: { sluice: { CreateMultipartUpload: 1, UploadPart: 64, CompleteMultipartUpload: 1 } },
    smallFiles: { tus: { PutObject: 2, UploadPart: 1 } },
  },
  memory: {
    rssBySecond: [280 * MIB, 300 * MIB],
    rssMaxBytes: 300 * MIB,
    rssGrowthBytes: 90 * MIB,
    redisPeakBytes: 60 * MIB,
    redisBudgetBytes: 64 * MIB,
  },
};

describe('figures of uploads', () => {
  it('the JSON object has medians, ratios to both peers, and null for what was left out', () => {
    assert.deepEqual(toJson(FINDINGS), {
      large: {
        sluice: 180,
        tus: 100,
        direct: 200,
        vsTus: 1.8,
        vsDirect: 0.9,
        s3CallsPerFile: 66,
        cpuSecondsPerGiB: { sluice: 5, tus: 11 },
      },
      smallChunks: {
        sluice: 40,
        tus: 10,
        direct: null,
        vsTus: 4,
        vsDirect: null,
        s3CallsPerFile: null,
        cpuSecondsPerGiB: { sluice: null, tus: null },
      },
      smallFiles: {
        sluice: null,
        tus: 50,
        direct: 400,
        vsTus: null,
        vsDirect: null,
        s3CallsPerFile: null,
        cpuSecondsPerGiB: { sluice: null, tus: null },
      },
      rssMb: 300,
      rssGrowthMb: 90,
      redisPeakBytes: 60 * MIB,
      redisBudgetBytes: 64 * MIB,
    });
  });

  it('the table says which goals were met and which were missed', () => {
    const lines = toTable(FINDINGS).split('\n');
    const line = (start: string): string => lines.find((one) => one.startsWith(start)) ?? '';
    assert.match(line('one file of 1 GiB'), /180 \(160–200\).*1\.80×.*0\.90×.*\bmet$/);
    assert.match(line('CPU of the server, large'), /0\.45×.*\bmet$/);
    assert.match(line('64 MiB in chunks'), /4\.00×.*MISSED$/);
    assert.match(line('2,000 files'), /≥ 4× tus$/, 'what was not measured is neither met nor missed');
    assert.match(line('S3 calls per file, large'), /66\.0/);
    assert.match(line('RSS with'), /300 \(growth 90\).*MISSED$/);
    assert.match(line('Redis for chunks'), /60.*64, its budget.*\bmet$/);
  });

  it('a file that is slower than direct misses its goal, however fast it is beside tus', () => {
    const slow: Findings = { ...FINDINGS, rates: { large: { sluice: [100], tus: [10], direct: [200] } } };
    assert.match(toTable(slow), /one file of 1 GiB.*10\.00×.*0\.50×.*MISSED/);
  });

  it('a saved result carries the spreads, the cost of Redis and the S3 calls one by one', () => {
    const spreads = toSpreads(FINDINGS);
    assert.deepEqual(spreads['rssMbBySecond'], [280, 300]);
    const { large } = spreads as { large: Record<string, Record<string, unknown>> };
    assert.deepEqual(large['tus'], { min: 90, max: 110 });
    assert.deepEqual(large['redisCpuSecondsPerGiB']!['sluice'], { min: 0.25, max: 0.25 });
    assert.deepEqual(large['s3CallsPerFile']!['sluice'], FINDINGS.s3CallsPerFile.large!.sluice);
  });

  it('growth of memory is that of the second half over the first', () => {
    assert.deepEqual(summarise([1, 5, 4, 3]), { rssMaxBytes: 5, rssGrowthBytes: -1 });
    assert.deepEqual(summarise([1, 2, 3, 9]), { rssMaxBytes: 9, rssGrowthBytes: 7 });
    assert.deepEqual(summarise([7]), { rssMaxBytes: 7, rssGrowthBytes: 0 });
  });

  it('a quick run sends an eighth of the bytes', () => {
    const total = ({ files, fileBytes }: { files: number; fileBytes: number }): number => files * fileBytes;
    for (const name of SCENARIOS) assert.equal(total(QUICK.scenarios[name]) * 8, total(FULL.scenarios[name]));
    assert.equal(total(QUICK.memory) * 8, total(FULL.memory));
  });

  it('files differ, parts of a file differ, and chunks put together are the file', () => {
    const tape = new Tape(20 * MIB);
    const [first, second] = [tape.file(0, 20 * MIB, 'a').bytes, tape.file(1, 20 * MIB, 'b').bytes];
    assert.notDeepEqual(tape.digest(first), tape.digest(second));
    const parts = chunksOf(first, 8 * MIB);
    assert.deepEqual(
      parts.map(({ length }) => length),
      [8 * MIB, 8 * MIB, 4 * MIB],
    );
    assert.ok(!parts[0]!.equals(parts[1]!));
    assert.ok(Buffer.concat(parts).equals(first));
    assert.deepEqual(tape.digest(parts[1]!), createHash('sha256').update(parts[1]!).digest());
  });

  it('processor time and memory of a process are what it used', async () => {
    const [before, ours] = [await cpuSeconds([process.pid]), process.cpuUsage()];
    const spent = (): number => (process.cpuUsage(ours).user + process.cpuUsage(ours).system) / 1e6;
    while (spent() < BURN_CPU_SECONDS) createHash('sha256').update(Buffer.alloc(MIB)).digest();
    const counted = (await cpuSeconds([process.pid])) - before;
    assert.ok(Math.abs(counted - spent()) < 0.1, `${counted} s counted`);
    const resident = await residentBytes(process.pid);
    assert.ok(Math.abs(resident / process.memoryUsage.rss() - 1) < 0.2);
  });
});
