/** A short run with a fixed seed, and the rules themselves: what they must object to. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Random } from '@sluice/testbed/random';
import { campaign } from '../src/campaign.js';
import { craft, type Crafted } from '../src/craft.js';
import { keyHolders, strangers } from '../src/identities.js';
import { judge } from '../src/judge.js';
import { Knowledge } from '../src/knowledge.js';
import type { Operation } from '../src/operations.js';
import type { Outcome } from '../src/send.js';

const requests = 3_000;

const operation: Operation = {
  method: 'POST',
  path: '/v1/things/{id}',
  group: 'things',
  needs: 'operator',
  of: 'installation',
  hasOtherWays: false,
  parameters: [{ name: 'limit', in: 'query', schema: { type: 'integer', minimum: 1, maximum: 5 } }],
  body: {
    type: 'application/json',
    schema: { type: 'object', required: ['drive'], properties: { drive: { type: 'string' } } },
  },
};

test('thousands of odd requests to every route: no failure, no hang, no change without authority', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-fuzz-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const report = await campaign({ requests, seed: 'short', folder, say: () => {} });
  t.diagnostic(`${report.operations} routes, ${Math.round(report.requests / report.seconds)} requests/s`);
  const told = report.findings.map(({ what, where, first, curl }) => `${where}: ${what}\n${first}\n${curl}`);
  assert.deepEqual(told, []);
  assert.equal(report.requests, requests);
  assert.ok(report.operations > 20);
  // A run in which everything is refused at the door would prove little.
  const successes = [...report.statuses].filter(([status]) => status.startsWith('2'));
  assert.ok(successes.reduce((sum, [, count]) => sum + count, 0) > requests / 20);
});

test('the rules object to failures, foreign shapes and successes of those who may not', () => {
  const crafted: Crafted = { operation, method: 'POST', path: '/v1/things/1', headers: {}, bent: [] };
  const answer = (status: number, text: string): Outcome => ({
    kind: 'answer',
    status,
    headers: { 'content-type': 'application/json' },
    text,
  });
  const refusal = '{"error":{"code":"FORBIDDEN","message":"no","retryable":false}}';
  const [holder] = keyHolders.filter(({ name }) => name === 'installation operator');
  const [stranger] = strangers;
  const lesser = keyHolders.filter(({ name }) => name !== holder!.name && name !== 'installation admin');
  assert.deepEqual(judge(crafted, holder!, answer(200, '{}')), []);
  assert.deepEqual(judge(crafted, stranger!, answer(403, refusal)), []);
  for (const identity of [...lesser, ...strangers])
    assert.equal(judge(crafted, identity, answer(200, '{}')).length, 1, identity.name);
  // Nothing is down while it runs: 503 and 507 are defects as well.
  for (const status of [500, 502, 503, 507])
    assert.deepEqual(judge(crafted, holder!, answer(status, refusal.replace('FORBIDDEN', 'INTERNAL'))), [
      `answered ${status} INTERNAL`,
    ]);
  for (const text of [
    '',
    '{}',
    '{"error":"x"}',
    '{"error":{"code":"x"}}',
    refusal.replace('"no"', '"at /a.js:1"'),
  ])
    assert.notDeepEqual(judge(crafted, holder!, answer(400, text)), [], text);
  assert.equal(judge(crafted, holder!, { kind: 'hang' }).length, 1);
  assert.equal(judge(crafted, holder!, { kind: 'cut', reason: 'ECONNRESET' }).length, 1);
});

test('the same seed draws the same requests, and they differ from each other', () => {
  const draw = (seed: string): string[] =>
    Array.from({ length: 200 }, (_, index) => {
      const { path, method, headers, body } = craft(
        operation,
        new Random(`${seed} ${index}`),
        new Knowledge(),
      );
      return JSON.stringify([method, path, headers, body?.toString('base64')]);
    });
  assert.deepEqual(draw('a'), draw('a'));
  assert.notDeepEqual(draw('a'), draw('b'));
  assert.ok(new Set(draw('a')).size > 100);
});
