/*
 * The uploads suite in miniature: every side sends real files to a real S3 server, and every measure yields a figure.
 * Nothing here judges speed.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { standIn } from './standInServer.js';
import { toJson, toSpreads } from '../src/uploads/report.js';
import { startS3, type S3Server } from '../src/uploads/s3Server.js';
import { SIDES, type StartUploadServer } from '../src/uploads/side.js';
import { SCENARIOS, TINY } from '../src/uploads/sizes.js';
import { startSluice } from '../src/uploads/sluiceSide.js';
import { MEASURES, measureUploads, quietenSdk } from '../src/uploads/suite.js';
import { Client, type Turn } from '../src/uploads/turns.js';
import { startTus } from '../src/uploads/tusSide.js';

const MIB = 2 ** 20;
const CHUNKS = { chunkBytes: MIB, chunksAtOnce: 2 };
const PROGRAM = fileURLToPath(new URL('../src/main.js', import.meta.url));
const silent = (): void => {};
let labels = 0;

function turn(changes: Partial<Turn>): Turn {
  const label = `test-${++labels}`;
  return { kind: 'test', files: 1, fileBytes: MIB, filesAtOnce: 1, label, verify: true, ...changes };
}

describe('the uploads suite', { concurrency: false }, () => {
  let s3: S3Server;
  before(async () => {
    quietenSdk();
    s3 = await startS3();
  });
  after(() => s3.stop());

  async function take(
    start: StartUploadServer | undefined,
    side: (typeof SIDES)[number],
    ...turns: Turn[]
  ): Promise<void> {
    const server = await start?.({ s3: s3.access });
    try {
      for (const asked of turns) {
        const client = new Client({ side, s3: s3.access, url: server?.url ?? '' }, asked.fileBytes);
        assert.ok((await client.takeTurn(asked)).seconds > 0);
      }
    } finally {
      await server?.stop();
    }
  }

  const starts = { sluice: startSluice, tus: startTus, direct: undefined };
  for (const side of SIDES) {
    it(`${side} keeps the contract: files sent whole or in chunks read back as they were`, async () => {
      const whole = turn({ files: 3, fileBytes: 300_001, filesAtOnce: 3 });
      const severalParts = turn({ fileBytes: 17 * MIB + 1 });
      const inChunks = turn({ files: 2, fileBytes: 2.5 * MIB, filesAtOnce: 2, chunks: CHUNKS });
      await take(starts[side], side, whole, severalParts, inChunks);
      await s3.empty();
      assert.equal(await s3.storedBytes(), 0);
    });
  }

  it('a server that has no room is asked again, and the file arrives', async () => {
    await take(standIn({ busyTimes: 3 }), 'sluice', turn({}));
    await take(standIn({ busyTimes: 3 }), 'sluice', turn({ chunks: CHUNKS }));
  });

  it('a server whose digest is not that of the file gets no figure', async () => {
    await assert.rejects(take(standIn({ spoils: true }), 'sluice', turn({})), { code: 'CONTENT_DIFFERS' });
    const inChunks = turn({ chunks: CHUNKS });
    await assert.rejects(take(standIn({ spoils: true }), 'sluice', inChunks), { code: 'CONTENT_DIFFERS' });
  });

  it('a server that stores nothing gets no figure', async () => {
    const forgetful = { servers: { sluice: standIn({ forgets: true }) }, sides: ['sluice'] as const };
    const sizes = { ...TINY, warmUps: 0 };
    const run = measureUploads({ ...forgetful, sizes, measures: ['smallFiles'], say: silent });
    await assert.rejects(run, { code: 'BYTES_MISSING' });
  });

  it('every measure yields its figures, under the names of the JSON object', async () => {
    const { findings } = await measureUploads({
      servers: { tus: startTus, sluice: startSluice },
      sizes: TINY,
      measures: MEASURES,
      sides: SIDES,
      say: silent,
    });
    const json = toJson(findings) as Record<string, Record<string, unknown>>;
    const memory = ['rssMb', 'rssGrowthMb', 'redisPeakBytes', 'redisBudgetBytes'];
    assert.deepEqual(Object.keys(json), [...SCENARIOS, ...memory]);
    for (const name of SCENARIOS) {
      const { cpuSecondsPerGiB, ...figures } = json[name]!;
      const names = ['sluice', 'tus', 'direct', 'vsTus', 'vsDirect', 's3CallsPerFile'];
      assert.deepEqual(Object.keys(figures), names);
      assert.ok(Object.values(figures).every((value) => Number(value) > 0));
      assert.deepEqual(Object.keys(cpuSecondsPerGiB as object), ['sluice', 'tus']);
    }
    assert.ok(Number(json['rssMb']) > 1);
    assert.ok(Number(json['redisPeakBytes']) > 100_000);
    const { smallFiles } = toSpreads(findings) as { smallFiles: { s3CallsPerFile: { direct: unknown } } };
    assert.deepEqual(smallFiles.s3CallsPerFile.direct, { PutObject: 1 });
  });

  it('a side without a server is left out, with a word about it', async () => {
    const said: string[] = [];
    const { findings } = await measureUploads({
      servers: {},
      sizes: { ...TINY, warmUps: 0 },
      measures: ['smallFiles', 'memory'],
      sides: SIDES,
      say: (line) => said.push(line),
    });
    assert.match(said[0] ?? '', /without sluice and tus/);
    const { smallFiles } = toJson(findings) as { smallFiles: Record<string, unknown> };
    assert.equal(smallFiles['sluice'], null);
    assert.equal(smallFiles['vsTus'], null);
    assert.ok(Number(smallFiles['direct']) > 0);
    assert.equal(findings.memory, undefined);
  });

  it('a quick run prints one JSON object and nothing else', () => {
    const args = ['uploads', '--quick', '--rounds', '1', '--json', '--only', 'smallChunks,direct'];
    const { status, stdout, stderr } = spawnSync(process.execPath, [PROGRAM, ...args], { encoding: 'utf8' });
    assert.equal(status, 0, stderr);
    const json = JSON.parse(stdout) as Record<string, { tus: number | null; direct: number }>;
    assert.deepEqual(Object.keys(json), ['smallChunks']);
    assert.ok(json['smallChunks']!.direct > 0 && json['smallChunks']!.tus === null);
  });

  it('a name that --only does not know is refused', () => {
    const { status, stderr } = spawnSync(process.execPath, [PROGRAM, 'uploads', '--only', 'nothing'], {
      encoding: 'utf8',
    });
    assert.equal(status, 1);
    assert.match(stderr, /BAD_COMMAND_LINE.*nothing/);
  });
});
