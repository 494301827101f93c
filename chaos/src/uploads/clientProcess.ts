// A client: uploads files of all shapes, several at once, until it is told to end; then it finishes what it has begun. What it means
// to send and everything that it is answered is written down.
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Journal } from '../evidence.js';
import { Random } from '@sluice/testbed/random';
import { files } from './evidence.js';
import type { ClientLine } from './evidence.js';
import { Http } from './http.js';
import { readPart } from './part.js';
import { sendFile } from './sendFile.js';
import { bytesOf, drawFile, sha256Of } from './shapes.js';

const lookEveryMs = 20;

const part = readPart();
const log = new Journal<ClientLine>(join(part.folder, files.client(`${part.name}-${process.pid}`)));
const random = new Random(`${part.seed} ${part.name} ${process.pid}`);
const underWay = new Map<string, number>();
const hurry = new AbortController();
let count = 0;
let stopping = false;
process.once('SIGTERM', () => {
  stopping = true;
  setTimeout(() => hurry.abort(), part.finishWithinMs).unref();
});

while (!stopping) {
  const bytes = [...underWay.values()].reduce((sum, size) => sum + size, 0);
  if (underWay.size < part.concurrency && bytes < part.bytesUnderWay) begin();
  await sleep(lookEveryMs);
}
while (underWay.size > 0) await sleep(lookEveryMs);
process.exit(0);

function begin(): void {
  const key = `${part.name}-${process.pid}-${++count}`;
  const file = drawFile(random, key, part.repeatShare);
  const { path, size, shape } = file;
  const bytes = bytesOf(file);
  underWay.set(key, size);
  log.write({ e: 'intent', at: Date.now(), key, path, size, sha256: sha256Of(bytes), shape });
  const http = new Http(part.servers, key, log, random.fork(key));
  void sendFile({ file, bytes, http, log, random: random.fork(`${key} sends`), signal: hurry.signal })
    .catch((error: unknown) => {
      const why = error instanceof Error ? (error.stack ?? error.message) : String(error);
      log.write({ e: 'stuck', at: Date.now(), key, why });
    })
    .finally(() => underWay.delete(key));
}
