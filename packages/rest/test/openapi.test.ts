// The OpenAPI document and the guide say what is served: not less, not more.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
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

test('the document holds to the schema of OpenAPI 3.1', async () => {
  const { valid, errors } = await new Validator().validate(structuredClone(document));
  assert.ok(valid, JSON.stringify(errors));
});

test('every operation has a name of its own, a group that is listed, and says whom it is for', () => {
  const operations = Object.values<Loose>(document.paths).flatMap((item) => Object.values<Loose>(item));
  const names = operations.map(({ operationId }) => operationId as string);
  assert.equal(new Set(names).size, names.length);
  for (const name of names) assert.match(name, /^[a-z]+([A-Z][a-z0-9]*)+$/);
  const groups = new Set(document.tags.map(({ name }: Loose) => name));
  for (const operation of operations) {
    assert.ok(groups.has(operation.tags[0]), operation.operationId);
    assert.ok(['viewer', 'operator', 'admin', 'nobody'].includes(operation['x-needs']));
    assert.ok(['tenant', 'installation'].includes(operation['x-of']));
  }
  const { put, get, head } = document.paths['/v1/files/{drive}/{path}'];
  assert.equal(put.operationId, 'putFilesByDriveByPath');
  const answers = ({ responses }: Loose) =>
    Object.keys(responses)
      .filter((status) => /^[23]/.test(status))
      .map((status) => [status, responses[status].description]);
  assert.deepEqual(answers(put), [
    ['200', 'The replaced one'],
    ['201', 'The new file'],
  ]);
  assert.deepEqual(answers(get), [
    ['200', 'OK'],
    ['206', 'Partial Content'],
    ['304', 'Not Modified'],
  ]);
  assert.equal(head.responses[200].content, undefined);
  const conditions = [
    'Range',
    'If-Range',
    'If-Match',
    'If-None-Match',
    'If-Modified-Since',
    'If-Unmodified-Since',
  ];
  for (const download of [get, head, document.paths['/v1/nodes/{id}/content'].get]) {
    const known = new Set(download.parameters.map(({ name }: Loose) => name));
    for (const name of ['disposition', ...conditions]) assert.ok(known.has(name), name);
  }
  assert.equal(document['x-error-codes'].NODE_NOT_FOUND, 404);
});

test('the document names every route that is registered, and no other', () => {
  const described = Object.entries<Loose>(document.paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
  );
  // What answers for all other addresses, for preflights, and the document itself, for machines and for people.
  const beside = new Set(['/v1/*', '/*', '/openapi.json', '/docs']);
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
