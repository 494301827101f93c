/** The dashboard as files: what is served to whom, under which rules, and what never is. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { silentLogger } from '@sluice/base';
import { makeOwnedFolder } from '@sluice/testbed';
import { serveHttp, type HttpServer } from '../src/http.js';
import { Pages } from '../src/pages.js';

const asBrowser = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
let server: HttpServer;

before(async () => {
  const folder = makeOwnedFolder('pages');
  for (const name of ['assets', 'src', 'dist']) mkdirSync(join(folder, 'built', name), { recursive: true });
  const write = (name: string, text: string): void => writeFileSync(join(folder, name), text);
  write('built/index.html', '<!doctype html><title>Sluice</title>');
  write('built/theme.js', '// theme');
  write('built/assets/index-abc123.js', 'console.log(1)');
  write('built/src/app.js', 'compiled for tests');
  write('built/.packed', 'digest');
  write('secret.js', 'outside');
  const pages = Pages.load(join(folder, 'built'));
  const everybody = { check: async () => {}, isInsider: async () => true, refuse: () => {} };
  server = await serveHttp({
    door: everybody,
    ...{ host: '127.0.0.1', port: 0, checks: {}, metrics: [], files: undefined, logger: silentLogger },
    pages,
  });
});

after(() => server.stop(1_000));

test('a browser gets the page at / and at every address that is a page; programs get a few words', async () => {
  for (const path of ['/', '/queues/mail', '/jobs?queue=mail']) {
    const page = await fetch(server.url + path, { headers: asBrowser });
    assert.equal(page.status, 200);
    assert.match(await page.text(), /<title>Sluice/);
    assert.match(page.headers.get('Vary')!, /Accept\b/);
  }
  const words = await fetch(server.url);
  assert.match(words.headers.get('Content-Type')!, /^text\/plain/);
  assert.match(await words.text(), /\/healthz/);
  assert.equal((await fetch(`${server.url}/queues`)).status, 404);
});

test('the page runs its own files and nothing else', async () => {
  const { headers } = await fetch(server.url, { headers: asBrowser });
  const policy = headers.get('Content-Security-Policy')!;
  for (const rule of [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "frame-ancestors 'none'",
  ])
    assert.ok(policy.includes(rule), policy);
  assert.doesNotMatch(policy, /unsafe|\*|data:/);
  assert.equal(headers.get('X-Content-Type-Options'), 'nosniff');
  assert.equal(headers.get('Cache-Control'), 'no-cache');
});

test('hashed files are kept for a year, the others are asked for again and answered with 304', async () => {
  const asset = await fetch(`${server.url}/assets/index-abc123.js`);
  assert.equal(await asset.text(), 'console.log(1)');
  assert.match(asset.headers.get('Cache-Control')!, /max-age=31536000, immutable/);
  const first = await fetch(server.url, { headers: asBrowser });
  const again = await fetch(server.url, {
    headers: { ...asBrowser, 'If-None-Match': first.headers.get('ETag')! },
  });
  assert.equal(again.status, 304);
  const plain = await fetch(`${server.url}/theme.js`, { headers: { 'Accept-Encoding': 'identity' } });
  assert.equal(plain.headers.get('Content-Encoding'), null);
  assert.equal(await plain.text(), '// theme');
});

test('no address leads out of the folder, nor to what the compiler left in it', async () => {
  const paths = [
    '/../secret.js',
    '/assets/../../secret.js',
    '/assets/%2e%2e/%2e%2e/secret.js',
    '/assets/..%2f..%2fsecret.js',
    '//secret.js',
    '/src/app.js',
    '/.packed',
    '/assets/',
    '/assets/nothing.js',
  ];
  for (const path of paths) assert.equal(await statusOf(path), 404, path);
});

test('only GET and HEAD are answered', async () => {
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
    assert.equal((await fetch(server.url, { method, headers: asBrowser })).status, 405);
    assert.equal((await fetch(`${server.url}/theme.js`, { method, headers: asBrowser })).status, 404);
  }
  const head = await fetch(server.url, { method: 'HEAD', headers: asBrowser });
  assert.equal(head.status, 200);
  assert.equal(await head.text(), '');
});

test('a dashboard that was not built is not there', () => {
  assert.equal(Pages.load(makeOwnedFolder('nothing')), undefined);
});

/** As it stands: fetch would tidy the path up before it sends it. */
function statusOf(path: string): Promise<number> {
  const { hostname, port } = new URL(server.url);
  return new Promise((resolve, reject) => {
    const asked = request({ hostname, port, path }, (response) => {
      response.resume();
      resolve(response.statusCode!);
    });
    asked.once('error', reject);
    asked.end();
  });
}
