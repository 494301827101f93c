/**
 * How many small files per second the records take: 16 callers, one PostgreSQL with its defaults, every commit on disk.
 * Beside it, in the same run, what the same connections reach with the smallest possible transaction: an insert of one row.
 *
 *     node packages/records/dist/test/storeWholeRate.js
 */
import { startPostgres } from '@sluice/testbed';
import { Pool } from 'pg';
import { openRecords } from '../src/index.js';

const CALLERS = 16;
const FILES = 2_000;
const ROUNDS = 3;

const server = await startPostgres();
const url = await server.createDatabase();
const records = await openRecords({ url, poolSize: CALLERS });
await records.drives.create({ tenant: 't', name: 'd', bucket: 'b' });
await server.query('CREATE TABLE smallest (n int PRIMARY KEY)', [], url);
const pool = new Pool({ connectionString: url, max: CALLERS });

async function storeWhole(n: number): Promise<unknown> {
  const place = {
    id: `upload-${n}`,
    tenant: 't',
    drive: 'd',
    path: `folder/file-${n}.txt`,
    objectKey: `d/upload-${n}`,
  };
  const object = { size: 1_000, etag: '"e"', contentType: 'text/plain', sha256: 'a'.repeat(64) };
  return records.uploads.storeWhole({
    ...place,
    ...object,
    ifExists: 'replace',
    metadata: { source: 'rate' },
  });
}

async function perSecond(first: number, work: (n: number) => Promise<unknown>): Promise<number> {
  let next = first;
  const began = performance.now();
  const call = async (): Promise<void> => {
    while (next < first + FILES) await work(next++);
  };
  await Promise.all(Array.from({ length: CALLERS }, call));
  return Math.round(FILES / ((performance.now() - began) / 1_000));
}

for (let round = 0; round < ROUNDS; round++) {
  const smallest = await perSecond(round * FILES, (n) => pool.query('INSERT INTO smallest VALUES ($1)', [n]));
  const whole = await perSecond(round * FILES, storeWhole);
  console.log(`storeWhole ${whole}/s, an insert of one row ${smallest}/s`);
}
await pool.end();
await records.close();
await server.stop();
