import { randomUUID } from 'node:crypto';
import { openRecords } from '@sluice/records';

const url = process.env['SLUICE_EXAMPLE_POSTGRES'] ?? 'postgres://127.0.0.1:5432/sluice';
const records = await openRecords({ url }); // connects, and brings the schema up to date
await records.drives.create({ tenant: 'acme', name: 'docs', bucket: 'files' });

const id = randomUUID();
const place = { tenant: 'acme', drive: 'docs', path: 'letters/hello.txt' };
await records.uploads.begin({ id, ...place, objectKey: `docs/${id}`, ifExists: 'replace' });
await records.uploads.raiseFence(id, 1); // from now on nobody with an older fence can complete it

// … the object is stored and verified …
const object = { size: 5, etag: '"5d41"', contentType: 'text/plain' };
const { node } = await records.uploads.activate({ id, fence: 1, ...object });
console.log(node?.path, node?.version); // letters/hello.txt 1
await records.close();
