/** The registry of pages, and what was packed. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { pageFor, pages } from '../src/pages.js';
import { to } from '../src/place.js';

const dist = new URL('../', import.meta.url);
const mostBytes = 150 * 1_024;

test('every address leads to one page, and parts of it may hold anything', () => {
  assert.equal(pageFor([])!.entry.title, 'Overview');
  assert.deepEqual(pageFor(['jobs', 'a/b', '<x>'])!.params, { queue: 'a/b', id: '<x>' });
  assert.equal(pageFor(['nothing', 'here']), null);
  assert.equal(to('jobs', 'a/b', '1?x', { state: 'dead', empty: '' }), '/jobs/a%2Fb/1%3Fx?state=dead');
});

test('no two pages have the same key or the same path', () => {
  const letters = pages.flatMap(({ letter }) => letter ?? []);
  assert.equal(new Set(letters).size, letters.length);
  assert.equal(new Set(pages.map(({ path }) => path)).size, pages.length);
});

test('the first page with its charts takes at most 150 KB of gzipped JavaScript', () => {
  const html = readFileSync(new URL('index.html', dist), 'utf8');
  const first = [...html.matchAll(/(?:src|href)="\/(assets\/[^"]+\.js)"/g)].map(([, file]) => file!);
  assert.ok(first.length > 0);
  // All chunks of all pages together are more than any visitor's first page loads.
  const all = readdirSync(new URL('assets/', dist)).filter((name) => name.endsWith('.js'));
  const total = all.reduce(
    (sum, name) => sum + gzipSync(readFileSync(new URL(`assets/${name}`, dist))).length,
    0,
  );
  assert.ok(total <= mostBytes, `${total} bytes`);
});

test('the page has no inline script and no inline style, and loads nothing from elsewhere', () => {
  const html = readFileSync(new URL('index.html', dist), 'utf8');
  assert.doesNotMatch(html, /<script(?![^>]*\ssrc=)[^>]*>/);
  assert.doesNotMatch(html, /\sstyle=|<style|\son\w+=/);
  assert.doesNotMatch(html, /https?:\/\//);
  assert.ok(existsSync(new URL('theme.js', dist)));
});
