// The OpenAPI document and the guide say what is served: not less, not more.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { accessErrors } from '@sluice/access';
import { SluiceError } from '@sluice/base';
import { recordsErrors } from '@sluice/records';
import { uploadErrors } from '@sluice/upload';
import { answerFor } from '../src/errors.js';
import { restErrors, routes } from '../src/index.js';
import { startApi, stopServers, type Api, type Loose } from './harness.js';

let api: Api;
let document: Loose;

before(async () => {
  api = await startApi('file');
  document = (await api.call('GET', '/openapi.json')).body;
});

after(stopServers);

const guide = readFileSync(new URL('../../../../docs/guides/http-api.md', import.meta.url), 'utf8');

test('the document is OpenAPI 3.1: every operation has answers, every parameter its place', () => {
  assert.equal(document.openapi, '3.1.0');
  assert.deepEqual([document.info.title, document.info.version], ['Sluice', '0.0.0']);
  const methods = new Set(['get', 'head', 'put', 'post', 'patch', 'delete']);
  for (const [path, item] of Object.entries<Loose>(document.paths)) {
    assert.match(path, /^\//);
    for (const [method, operation] of Object.entries<Loose>(item)) {
      const where = `${method} ${path}`;
      assert.ok(methods.has(method), where);
      assert.ok(operation.summary.length > 5, where);
      const statuses = Object.keys(operation.responses);
      assert.ok(statuses.includes('default') && statuses.some((status) => /^2\d\d$/.test(status)), where);
      for (const response of Object.values<Loose>(operation.responses)) assert.ok(response.description);
      const names = new Set<string>();
      for (const parameter of operation.parameters ?? []) {
        assert.ok(['path', 'query', 'header'].includes(parameter.in), where);
        assert.equal(parameter.required, parameter.in === 'path', where);
        assert.ok(parameter.schema, where);
        assert.ok(!names.has(`${parameter.in} ${parameter.name}`), where);
        names.add(`${parameter.in} ${parameter.name}`);
      }
      for (const [, name] of path.matchAll(/\{(\w+)\}/g)) assert.ok(names.has(`path ${name}`), where);
      if (operation.requestBody) assert.ok(Object.keys(operation.requestBody.content).length === 1, where);
    }
  }
  const references = JSON.stringify(document).match(/"\$ref":"[^"]+"/g) ?? [];
  for (const reference of references) assert.equal(reference, '"$ref":"#/components/schemas/Error"');
  assert.ok(document.components.schemas.Error);
  for (const requirement of document.security.flatMap((each: object) => Object.keys(each)))
    assert.ok(requirement in document.components.securitySchemes);
});

test('the document names every route that is registered, and no other', () => {
  const described = Object.entries<Loose>(document.paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
  );
  // What answers for all other addresses, for preflights, and the document itself.
  const beside = new Set(['/v1/*', '/*', '/openapi.json']);
  const registered = api.registered
    .filter(({ url }) => !beside.has(url))
    .map(({ method, url }) => `${method} ${url.replace(/:(\w+)/g, '{$1}').replace('*', '{path}')}`);
  assert.deepEqual([...described].sort(), [...registered].sort());
  assert.equal(described.length, routes.length);
});

/** Code → status, as the guide's table has them. */
function tableOfErrors(): Map<string, number> {
  const rows = guide.matchAll(/^\|\s*`([A-Z0-9_]+)`\s*\|\s*(\d{3})\s*\|/gm);
  return new Map([...rows].map(([, code, status]) => [code!, Number(status)]));
}

test('the guide has every error that a client can meet, with its status', () => {
  const table = tableOfErrors();
  const known = { ...accessErrors, ...restErrors, ...uploadErrors, ...recordsErrors };
  const inside = new Set([
    'RECORDS_REFUSED',
    'RECORDS_CLOSED',
    'SCHEMA_TOO_NEW',
    'UPLOAD_FENCED',
    'SIZE_MISMATCH',
  ]);
  for (const code of Object.keys(known)) assert.ok(inside.has(code) || table.has(code), `${code} is missing`);
  const folder = new URL('../../test/', import.meta.url);
  for (const file of readdirSync(folder)) {
    const text = readFileSync(new URL(file, folder), 'utf8');
    for (const [, code] of text.matchAll(/\d{3}, '([A-Z0-9]+_[A-Z0-9_]+)'/g))
      assert.ok(table.has(code!) || code!.startsWith('SCAN'), `${code} in ${file} is missing`);
  }
  for (const [code, status] of table) {
    if (code === 'INTERNAL') continue;
    const make = (known as Record<string, ((details: object) => SluiceError) | undefined>)[code];
    const retryable = make?.({}).retryable ?? status === 503;
    assert.equal(answerFor(new SluiceError(code, '', { retryable })).status, status, code);
  }
});

test('the guide shows every group of routes', () => {
  for (const { url } of routes) {
    const group = url.split('/').slice(0, 3).join('/');
    assert.ok(guide.includes(group), `${group} is missing`);
  }
  for (const { method, url } of routes.filter((route) => route.method !== 'HEAD')) {
    const shape = new RegExp(`${method} ${url.replace(/:\w+/g, '\\S+?').replace(/\*$/, '\\S+')}`);
    assert.match(guide, shape);
  }
});
