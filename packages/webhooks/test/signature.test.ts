// Signatures that a receiver can check, and secrets that nobody finds in the database.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { sign, verify } from '../src/index.js';
import { newSecret, Seal } from '../src/sealing.js';
import { checkTopics, matches, mayMatch } from '../src/topics.js';

const body = '{"id":"e1"}';
const nowMs = 1_700_000_000_000;
const timestamp = '1700000000';

test('a signature is the HMAC-SHA256 of timestamp, dot and body', () => {
  const wanted = createHmac('sha256', 's').update(`${timestamp}.${body}`).digest('hex');
  assert.equal(sign(['s'], timestamp, body), `v1=${wanted}`);
});

test('a receiver accepts either secret while one replaces the other, and nothing that was changed or is old', () => {
  const [old, fresh] = [newSecret(), newSecret()];
  const signature = sign([fresh, old], timestamp, body);
  const right = { signature, timestamp, body };
  assert.ok(verify(old, right, { nowMs }) && verify(fresh, right, { nowMs }));
  assert.ok(!verify(newSecret(), right, { nowMs }));
  assert.ok(!verify(old, { ...right, body: `${body} ` }, { nowMs }));
  assert.ok(!verify(old, { ...right, timestamp: '1700000001' }, { nowMs }));
  assert.ok(!verify(old, right, { nowMs: nowMs + 301_000 }));
  assert.ok(verify(old, right, { nowMs: nowMs + 299_000 }));
  for (const wrong of ['', 'v1=', 'v1=00', signature.toUpperCase(), signature.replaceAll('v1', 'v0')])
    assert.ok(!verify(old, { ...right, signature: wrong }, { nowMs }), wrong);
  assert.ok(!verify(old, { body, signature: undefined, timestamp: undefined }, { nowMs }));
  assert.ok(!verify(old, { ...right, timestamp: 'NaN' }, { nowMs }));
});

test('a sealed secret opens for its webhook and its server only, and each seal is another text', () => {
  const seal = new Seal('server secret');
  const sealed = seal.close('whsec_x', 'wh_1');
  assert.ok(!sealed.includes('whsec'));
  assert.notEqual(seal.close('whsec_x', 'wh_1'), sealed);
  assert.equal(seal.open(sealed, 'wh_1'), 'whsec_x');
  assert.equal(seal.open(sealed, 'wh_2'), undefined);
  assert.equal(new Seal('another').open(sealed, 'wh_1'), undefined);
  for (const wrong of ['', 'v1.', sealed.slice(0, -2), `v2${sealed.slice(2)}`, 'v1.AAAA'])
    assert.equal(seal.open(wrong, 'wh_1'), undefined, wrong);
});

test('patterns of topics match what they begin, and only whole words', () => {
  assert.ok(matches(['repository.documents.*'], 'repository.documents.created'));
  assert.ok(!matches(['repository.documents.*'], 'repository.uploads.completed'));
  assert.ok(!matches(['repository.documents'], 'repository.documents.created'));
  assert.ok(matches(['*'], 'jobs.dead') && matches(['x.y', 'jobs.dead'], 'jobs.dead'));
  assert.ok(mayMatch(['jobs.dead'], 'jobs.') && mayMatch(['*'], 'jobs.') && mayMatch(['jobs.*'], 'jobs.'));
  assert.ok(!mayMatch(['repository.*', 'jobsx.dead'], 'jobs.'));
  assert.deepEqual(checkTopics(['a.b', 'a.b', '*']), ['a.b', '*']);
  for (const wrong of [[], ['a.*.b'], ['A'], [''], ['a*'], ['a..b'], Array<string>(51).fill('a')])
    assert.throws(() => checkTopics(wrong));
});
