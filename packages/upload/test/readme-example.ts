import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { openRecords } from '@sluice/records';
import { DiskStore } from '@sluice/store';
import { Uploads } from '@sluice/upload';

const { SLUICE_EXAMPLE_POSTGRES, SLUICE_EXAMPLE_REDIS, SLUICE_EXAMPLE_FOLDER } = process.env;
const records = await openRecords({ url: SLUICE_EXAMPLE_POSTGRES ?? 'postgres://127.0.0.1:5432/sluice' });
await records.drives.create({ tenant: 'acme', name: 'main', bucket: 'disk' });
const uploads = new Uploads({
  redis: SLUICE_EXAMPLE_REDIS ?? 'redis://127.0.0.1:6379',
  records,
  storeOf: new DiskStore({ folder: SLUICE_EXAMPLE_FOLDER ?? 'objects' }),
});
await uploads.start();

// The whole file in one call …
const file = process.argv[1]!;
const { size } = await stat(file);
const stored = await uploads.store(
  { tenant: 'acme', drive: 'main', path: 'a.js' },
  createReadStream(file),
  size,
);

// … or chunk by chunk, in any order, from any number of processes. A source is a stream, or any iterable of bytes.
const chunkSize = 1_000;
const { id } = await uploads.initiate({ tenant: 'acme', drive: 'main', path: 'b.js', size, chunkSize });
for (let number = Math.ceil(size / chunkSize) - 1; number >= 0; number--) {
  const start = number * chunkSize;
  const end = Math.min(size, start + chunkSize);
  await uploads.receive(id, { number }, createReadStream(file, { start, end: end - 1 }), end - start);
  console.log((await uploads.status(id)).missing);
}
const { sha256 } = await uploads.completed(id);
console.log(sha256 === stored.sha256); // true
await uploads.stop();
await records.close();
