/** The entry for browsers: small, free of Node, and remembering in localStorage. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { upload } from '../src/index.js';
import { MAX_REMEMBERED, webStore } from '../src/webStore.js';
import { bytesOf, CHUNK, stage, to, withCode } from './stage.js';

const MOST_GZIP_BYTES = 12 * 1024;
/** This file runs from `dist/test/`. */
const folder = fileURLToPath(new URL('../..', import.meta.url));

test('the entry for browsers is at most 12 KB, minified and compressed, and needs nothing of Node', async (t) => {
  const { outputFiles, warnings } = await build({
    entryPoints: [join(folder, 'dist/src/index.js')],
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    write: false,
  });
  const bytes = gzipSync(outputFiles[0]!.contents, { level: 9 }).length;
  t.diagnostic(`${bytes} bytes`);
  assert.deepEqual(warnings, []);
  assert.ok(bytes <= MOST_GZIP_BYTES, `${bytes} bytes`);
});

test('the entry for browsers compiles with the types of browsers and without those of Node', async () => {
  const compiler = join(createRequire(import.meta.url).resolve('typescript/package.json'), '../bin/tsc');
  const args = [compiler, '-p', join(folder, 'tsconfig.browser.json')];
  await promisify(execFile)(process.execPath, args);
});

test('a page remembers an unfinished upload in localStorage, and continues it after a reload', async (t) => {
  const texts = new Map<string, string>([['unrelated', 'kept']]);
  const localStorage = {
    get length() {
      return texts.size;
    },
    key: (index: number) => [...texts.keys()][index] ?? null,
    getItem: (key: string) => texts.get(key) ?? null,
    setItem: (key: string, text: string) => void texts.set(key, text),
    removeItem: (key: string) => void texts.delete(key),
  };
  Object.defineProperty(globalThis, 'localStorage', { value: localStorage, configurable: true });
  t.after(() => Reflect.deleteProperty(globalThis, 'localStorage'));
  const server = await stage(t);
  const { resume: _, ...options } = to(server, { parallel: 1 });
  const file = new File([bytesOf(6 * CHUNK)], 'a.bin', { lastModified: 5 });
  server.fault = ({ kind, count }) => (kind === 'chunk' && count > 3 ? { status: 403 } : undefined);
  await assert.rejects(upload(file, options).done, withCode('FAULT'));
  assert.equal(texts.size, 2);
  server.fault = () => undefined;
  await upload(file, options).done;
  assert.deepEqual(server.chunksSeen(), [0, 1, 2, 3, 3, 4, 5]);
  assert.deepEqual([...texts.keys()], ['unrelated']);
  const store = webStore()!;
  for (let at = 0; at < MAX_REMEMBERED + 20; at++)
    await store.set(`sluice-upload-${at}`, `{"savedAt":${1000 - at}}`);
  assert.equal(texts.size, MAX_REMEMBERED + 1);
  assert.ok(texts.has('unrelated') && texts.has('sluice-upload-0'));
});

test('a page without Web Crypto and without storage uploads all the same', async (t) => {
  const server = await stage(t);
  const { resume: _, ...options } = to(server);
  const { subtle } = crypto;
  Object.defineProperty(crypto, 'subtle', { value: undefined, configurable: true });
  t.after(() => Object.defineProperty(crypto, 'subtle', { value: subtle, configurable: true }));
  const bytes = bytesOf(4 * CHUNK + 1);
  await upload(bytes, options).done;
  assert.deepEqual(new Uint8Array(server.content()), bytes);
});
