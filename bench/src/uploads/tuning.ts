/*
 * Which settings are the best for the peers? Every candidate gets the scenarios that depend on it, in rounds that rotate,
 * and the table is what `tusSettings.ts` and `directSender.ts` were chosen by. It is run by hand when a peer's version
 * or the machine changes: `npm run bench -- uploadsTuning`.
 */
import { DIRECT_SETTINGS, type DirectSettings } from './directSender.js';
import { startS3, type S3Server } from './s3Server.js';
import type { UploadServer } from './side.js';
import { FULL, QUICK, type ScenarioName, type Sizes } from './sizes.js';
import { openClient, quietenSdk, rateOf } from './suite.js';
import { startTus } from './tusSide.js';
import { TUS_SETTINGS, type TusSettings } from './tusSettings.js';
import type { Taken, Turn } from './turns.js';
import type { Booth } from '../booth.js';
import { cell } from '../figures.js';
import { keepTemporaryFilesInMemory } from '../memoryDisk.js';
import type { BenchOptions } from '../options.js';
import { rotate } from '../rotate.js';
import { renderTable } from '../table.js';

const MIB = 2 ** 20;
const PART_MIB = [8, 16, 32, 64];
const ROUNDS = 3;
/** The rest of the scenarios send less than a part. */
const TUNED: readonly ScenarioName[] = ['large', 'parallel', 'smallChunks'];

interface Candidate {
  side: 'tus' | 'direct';
  settings: TusSettings | DirectSettings;
  server: UploadServer | undefined;
  client: Booth<Turn, Taken>;
  rates: Partial<Record<ScenarioName, number[]>>;
}

export async function tuneUploads(options: BenchOptions): Promise<void> {
  keepTemporaryFilesInMemory();
  quietenSdk();
  const sizes = options.quick ? QUICK : FULL;
  const s3 = await startS3();
  const candidates: Candidate[] = [];
  try {
    for (const settings of tusCandidates()) candidates.push(await openTus(s3, settings, sizes));
    for (const settings of directCandidates()) candidates.push(openDirect(s3, settings, sizes));
    const asked = candidates.filter(({ side }) => options.only.length === 0 || options.only.includes(side));
    await compare(asked, s3, sizes, options.rounds ?? ROUNDS);
    process.stdout.write(`${toTable(asked)}\n`);
  } finally {
    for (const { client, server } of candidates) {
      await client.close();
      await server?.stop();
    }
    await s3.stop();
  }
}

function tusCandidates(): TusSettings[] {
  const sizes = PART_MIB.flatMap((partMib) =>
    [30, 60].map((partsAtOnce) => ({ ...TUS_SETTINGS, partBytes: partMib * MIB, partsAtOnce })),
  );
  return [...sizes, { ...TUS_SETTINGS, checksums: 'WHEN_SUPPORTED' }];
}

function directCandidates(): DirectSettings[] {
  const sizes = PART_MIB.map((partMib) => ({ ...DIRECT_SETTINGS, partBytes: partMib * MIB }));
  const queues = [2, 8].map((partsAtOnce) => ({ ...DIRECT_SETTINGS, partsAtOnce }));
  const others = (['WHEN_SUPPORTED', 'WHEN_REQUIRED'] as const).map((checksums) => ({
    ...DIRECT_SETTINGS,
    checksums,
  }));
  return [...sizes, ...queues, ...others.filter(({ checksums }) => checksums !== DIRECT_SETTINGS.checksums)];
}

async function openTus(s3: S3Server, settings: TusSettings, sizes: Sizes): Promise<Candidate> {
  const server = await startTus({ s3: s3.access }, settings);
  const client = openClient({ side: 'tus', s3: s3.access, url: server.url }, sizes);
  return { side: 'tus', settings, server, client, rates: {} };
}

function openDirect(s3: S3Server, settings: DirectSettings, sizes: Sizes): Candidate {
  const client = openClient({ side: 'direct', s3: s3.access, url: '', direct: settings }, sizes);
  return { side: 'direct', settings, server: undefined, client, rates: {} };
}

async function compare(candidates: Candidate[], s3: S3Server, sizes: Sizes, rounds: number): Promise<void> {
  let turns = 0;
  for (const name of TUNED) {
    process.stderr.write(`${name} …\n`);
    for (let round = 0; round <= rounds; round++) {
      for (const { client, rates } of rotate(candidates, round)) {
        const scenario = sizes.scenarios[name];
        const turn = { ...scenario, kind: name, label: `${name}-${++turns}`, verify: false };
        const { seconds } = await client.take(turn);
        // The first round is the warm-up.
        if (round > 0) (rates[name] ??= []).push(rateOf(name, scenario, seconds));
        await s3.empty();
      }
    }
  }
}

function toTable(candidates: Candidate[]): string {
  const rows = candidates.map(({ side, settings, rates }) => {
    const { partBytes, partsAtOnce, checksums } = settings;
    const about = `${side}: parts of ${partBytes / MIB} MiB, ${partsAtOnce} at once, ${checksums}`;
    return [about, ...TUNED.map((name) => cell(rates[name] ?? [], 0))];
  });
  return renderTable(['MB/s, median (smallest–largest round)', ...TUNED], rows);
}
