// Files that arrive slowly, and readers who ask for them again and again, so that uploads are in flight and the cache has something to do.
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { upload } from '@sluice/client/node';
import { between, often, oneOf } from './chance.js';

const mebibyte = 1_048_576;
/** Names are used again, so that a demo of an hour does not fill a disk. */
const names = [
  ...['reports/2026/annual.pdf', 'reports/2026/quarter-3.pdf', 'films/interview.mp4', 'films/site-visit.mp4'],
  ...[
    'calls/0412.m4a',
    'calls/0413.m4a',
    'scans/invoice-8812.tiff',
    'scans/contract.tiff',
    'notes/minutes.txt',
  ],
];

export interface FilesOptions {
  url: string;
  key: string | undefined;
  signal: AbortSignal;
  onProblem: (error: unknown) => void;
}

export async function startFiles(options: FilesOptions): Promise<void> {
  const { signal, onProblem } = options;
  await Promise.all([
    ...[0, 1, 2].map(() => often(0.2, signal, () => send(options), onProblem)),
    often(8, signal, () => read(options), onProblem),
  ]);
}

async function send({ url, key, signal }: FilesOptions): Promise<void> {
  const size = Math.floor(between(4, 24)) * mebibyte;
  const task = upload(new Uint8Array(randomBytes(size)), {
    ...{ url, drive: 'main', path: `demo/${oneOf(names)}`, signal, resume: false },
    ...{ chunkSize: mebibyte, parallel: 4, fetch: slowly },
    ...(key !== undefined && { key }),
  });
  await task.done;
}

/** A line that carries about a mebibyte per second, and not always in order. */
const slowly: typeof fetch = async (input, init) => {
  if (init?.method === 'PUT') await sleep(between(500, 6_000));
  return fetch(input, init);
};

async function read({ url, key, signal }: FilesOptions): Promise<void> {
  const headers: Record<string, string> = key === undefined ? {} : { 'X-Sluice-Key': key };
  const ask = async (path: string, method = 'GET'): Promise<unknown> => {
    const response = await fetch(url + path, { headers, signal, method });
    const text = await response.text();
    return response.ok && text.startsWith('{') ? JSON.parse(text) : {};
  };
  const { nodes = [] } = (await ask('/v1/nodes?drive=main')) as { nodes?: { id: string }[] };
  if (nodes.length > 0) await ask(`/v1/nodes/${oneOf(nodes).id}`);
  await ask(`/v1/files/main/demo/${oneOf(names)}`, 'HEAD');
}
