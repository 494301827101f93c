/*
 * Which settings are the best for the peers? Every candidate gets the scenarios that depend on it, in rounds that rotate,
 * and the table is what `tusSettings.ts` and `directSender.ts` were chosen by. It is run by hand when a peer's version
 * or the machine changes: `npm run bench -- uploadsTuning`.
 */
import { keepTemporaryFilesInMemory } from '@sluice/testbed';
import { DIRECT_SETTINGS, type DirectSettings } from './directSender.js';
import { startS3, type S3Server } from './s3Server.js';
import { FULL, GIB, QUICK, type ScenarioName, type Sizes } from './sizes.js';
import { openClient, quietenSdk, rateOf } from './suite.js';
import { startTus } from './tusSide.js';
import { TUS_SETTINGS, type TusSettings } from './tusSettings.js';
import { cell, show } from '../figures.js';
import type { BenchOptions } from '../options.js';
import { cpuSeconds } from '../processCost.js';
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
  rates: Partial<Record<ScenarioName, number[]>>;
  /** Of client, server and S3 together. Where others use the machine, it is steadier than the time that passed. */
  cpuSeconds: number;
  sentBytes: number;
}

export async function tuneUploads(options: BenchOptions): Promise<void> {
  keepTemporaryFilesInMemory();
  quietenSdk();
  const sizes = options.quick ? QUICK : FULL;
  const rounds = options.rounds ?? ROUNDS;
  const scenarios = chosen(TUNED, options.only);
  const sides = chosen(['tus', 'direct'] as const, options.only);
  const candidates = [...tusCandidates(), ...directCandidates()].filter(({ side }) => sides.includes(side));
  const s3 = await startS3();
  try {
    for (const name of scenarios) {
      for (let round = 0; round < rounds; round++) {
        for (const candidate of rotate(candidates, round)) await takeTurn(candidate, s3, name, sizes);
        process.stderr.write(`${name}, round ${round + 1} of ${rounds}\n`);
      }
    }
    process.stdout.write(`${toTable(candidates, scenarios)}\n`);
  } finally {
    await s3.stop();
  }
}

/** What `--only` names of these, or all of them. */
function chosen<T extends string>(all: readonly T[], only: readonly string[]): readonly T[] {
  const named = all.filter((name) => only.includes(name));
  return named.length > 0 ? named : all;
}

function tusCandidates(): Candidate[] {
  const settings = PART_MIB.flatMap((partMib) =>
    [30, 60].map((partsAtOnce) => ({ ...TUS_SETTINGS, partBytes: partMib * MIB, partsAtOnce })),
  );
  return [...settings, otherChecksums(TUS_SETTINGS)].map((one) => candidate('tus', one));
}

function directCandidates(): Candidate[] {
  const parts = PART_MIB.map((partMib) => ({ ...DIRECT_SETTINGS, partBytes: partMib * MIB }));
  const queues = [2, 8].map((partsAtOnce) => ({ ...DIRECT_SETTINGS, partsAtOnce }));
  return [...parts, ...queues, otherChecksums(DIRECT_SETTINGS)].map((one) => candidate('direct', one));
}

function otherChecksums<T extends TusSettings | DirectSettings>(settings: T): T {
  const other = settings.checksums === 'WHEN_REQUIRED' ? 'WHEN_SUPPORTED' : 'WHEN_REQUIRED';
  return { ...settings, checksums: other };
}

function candidate(side: Candidate['side'], settings: TusSettings | DirectSettings): Candidate {
  return { side, settings, rates: {}, cpuSeconds: 0, sentBytes: 0 };
}

/** Fresh processes for each turn, which an eighth of the bytes warms up: a dozen servers at once would be too many. */
async function takeTurn(one: Candidate, s3: S3Server, name: ScenarioName, sizes: Sizes): Promise<void> {
  const server = one.side === 'tus' ? await startTus({ s3: s3.access }, one.settings) : undefined;
  const { side, settings } = one;
  const client = openClient({ side, s3: s3.access, url: server?.url ?? '', direct: settings }, sizes);
  const pids = [client.pid, s3.pid, ...(server === undefined ? [] : [server.pid])];
  try {
    await client.take({ ...QUICK.scenarios[name], kind: name, label: 'warm-up', verify: false });
    const before = await cpuSeconds(pids);
    const scenario = sizes.scenarios[name];
    const { seconds } = await client.take({ ...scenario, kind: name, label: name, verify: false });
    one.cpuSeconds += (await cpuSeconds(pids)) - before;
    one.sentBytes += scenario.files * scenario.fileBytes;
    (one.rates[name] ??= []).push(rateOf(name, scenario, seconds));
  } finally {
    await client.close();
    await server?.stop();
    await s3.empty();
  }
}

function toTable(candidates: Candidate[], scenarios: readonly ScenarioName[]): string {
  const rows = candidates.map(({ side, settings, rates, ...cost }) => {
    const { partBytes, partsAtOnce, checksums } = settings;
    const about = `${side}: parts of ${partBytes / MIB} MiB, ${partsAtOnce} at once, ${checksums}`;
    const cpu = show(cost.cpuSeconds / (cost.sentBytes / GIB), 1);
    return [about, ...scenarios.map((name) => cell(rates[name] ?? [], 0)), cpu];
  });
  return renderTable(['MB/s, median (smallest–largest round)', ...scenarios, 'CPU of all, s/GiB'], rows);
}
