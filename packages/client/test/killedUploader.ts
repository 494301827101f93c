/**
 * A process that uploads a file and is killed in the middle of it (resume.test.ts). Arguments: url, file, folder of the
 * records, chunk size. Prints a line for each change of its progress.
 */
import { folderStore, upload } from '../src/node.js';

const [url = '', file = '', folder = '', chunkSize = ''] = process.argv.slice(2);
const result = await upload(file, {
  url,
  drive: 'main',
  path: 'killed.bin',
  chunkSize: Number(chunkSize),
  resume: folderStore(folder),
  onProgress: ({ ackedBytes, state }) => console.log(`${state} ${ackedBytes}`),
}).done;
console.log(`stored ${result.sha256}`);
