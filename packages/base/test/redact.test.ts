import assert from 'node:assert/strict';
import { test } from 'node:test';
import { consoleLogger, redactor } from '../src/index.js';

const canary = 'CANARY0123456789abcdefghijklmnopqrstuvwxyzAB';

function written(fields: object, message = 'said', known: string[] = []): string {
  let text = '';
  const log = consoleLogger({ write: (line) => void (text += line), redact: redactor(known) });
  log.info(fields, message);
  return text;
}

test('a field whose name says that it is secret is not written, however the name is spelt', () => {
  for (const name of [
    'authorization',
    'Authorization',
    'X-Sluice-Key',
    'x_service_key',
    'set-cookie',
    'secretAccessKey',
  ])
    for (const value of [canary, [canary], { deep: canary }, 170_417_170_417])
      assert.doesNotMatch(written({ headers: { [name]: value } }), /CANARY|170417170417/, name);
  assert.match(written({ token: null, secret: false }), /"token":null,"secret":false/);
});

test('a secret inside of a text is taken out, and the rest of the text stays', () => {
  const texts = [
    `the key slk_0123456789abcdef_${canary} was sent`,
    `the token slt_${canary}.${canary} was sent`,
    `the secret whsec_${canary} was sent`,
    `the header Authorization: Bearer ${canary} was sent`,
    `the header Basic ${canary} was sent`,
    `the cookie a=b; sluice_session=${canary}.${canary}; c=d was sent`,
    `the link /v1/nodes/1/content?tenant=a&signature=${canary} was sent`,
    `the url https://s3.example/b/k?X-Amz-Credential=${canary}&X-Amz-Signature=${canary} was sent`,
    `the header "x-service-key": "${canary}" was sent`,
    `the url postgres://user:${canary}@db.example/sluice was sent`,
    `the url redis+cluster://:${canary}@a,b was sent`,
  ];
  for (const text of texts) {
    for (const line of [written({ text }), written({}, text), written({ err: new Error(text) })]) {
      assert.doesNotMatch(line, /CANARY/, text);
      assert.match(line, /the \w+ /, text);
      assert.match(line, /was sent/, text);
    }
  }
  const line = written({ key: '0123456789abcdef', text: `slk_0123456789abcdef_${canary}` });
  assert.match(line, /slk_0123456789abcdef/, 'which key it was may be known');
});

test('what the writer was told is secret is taken out of everything', () => {
  const known = ['correct horse', 'battery+staple.*'];
  const line = written({ a: 'x correct horse y', b: ['battery+staple.*'] }, 'correct horse', known);
  assert.doesNotMatch(line, /horse|staple/);
  assert.match(written({ a: 'a b' }, 'm', ['a', '']), /"a":"a b"/, 'a word that is everywhere is no secret');
});

test('what is no secret stays as it is', () => {
  const text = 'GET /v1/files/main/report.pdf took 17 ms; see https://example.com/a:b@c and key 42';
  assert.ok(written({ text }).includes(text));
});

test('long hostile texts take no long time', () => {
  const redact = redactor(['known secret']);
  const began = performance.now();
  for (const piece of ['a.', 'a-', 'a:', 'x-', 'Bearer ', '?key=', '://', 'slk_', 'sluice_session'])
    redact('text', piece.repeat(100_000 / piece.length));
  assert.ok(performance.now() - began < 5_000);
});
