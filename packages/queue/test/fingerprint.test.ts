import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import {
  clipUtf8,
  describeError,
  type ErrorDescription,
  fingerprint,
  MAX_MESSAGE_BYTES,
  MAX_NAME_BYTES,
  MAX_STACK_BYTES,
  MAX_TITLE_BYTES,
} from '../src/fingerprint.js';

const stackIn = (place: string) => `Error: x\n    at ${place}\n    at run (/app/dist/worker.js:9:9)`;
const titleOf = (message: string) => fingerprint({ name: 'Error', message }).title.replace(/^Error: /, '');

function assertBounded(description: ErrorDescription): void {
  const bytes = (text: string) => Buffer.byteLength(text);
  assert.ok(bytes(description.name) <= MAX_NAME_BYTES);
  assert.ok(bytes(description.message) <= MAX_MESSAGE_BYTES);
  assert.ok(bytes(description.stack) <= MAX_STACK_BYTES);
  for (const text of Object.values(description) as string[]) assert.equal(Buffer.from(text).toString(), text);
}

test('a key is 16 hexadecimal characters and depends on class, message and top frame', () => {
  const base = {
    name: 'TypeError',
    message: 'no total',
    stack: stackIn('parse (/app/dist/invoice.js:10:5)'),
  };
  const { key, title } = fingerprint(base);
  assert.match(key, /^[0-9a-f]{16}$/);
  assert.equal(title, 'TypeError: no total at parse (invoice.js)');
  assert.notEqual(fingerprint({ ...base, name: 'RangeError' }).key, key);
  assert.notEqual(fingerprint({ ...base, message: 'no date' }).key, key);
  assert.notEqual(fingerprint({ ...base, stack: stackIn('render (/app/dist/invoice.js:10:5)') }).key, key);
});

test('a redeploy keeps the group: line, column, folder and content hash do not count', () => {
  const keys = [
    'parse (/app/dist/invoice.js:10:5)',
    'parse (file:///srv/releases/42/dist/invoice.js:77:13)',
    'async parse (C:\\app\\invoice.js:1:1)',
    'parse (/app/dist/invoice-3f9a2c1b.js:1:20331)',
    'parse (/app/dist/invoice.js?v=17:1:1)',
  ].map((place) => fingerprint({ name: 'Error', message: 'x', stack: stackIn(place) }).key);
  assert.equal(new Set(keys).size, 1);
});

test('frames of Node and of built-ins are passed over for the first one of the program', () => {
  const stack = [
    'SyntaxError: bad',
    '    at JSON.parse (<anonymous>)',
    '    at async open (node:internal/fs/promises:639:25)',
    '    at file:///app/read.js:3:1',
  ].join('\n');
  assert.equal(
    fingerprint({ name: 'SyntaxError', message: 'bad', stack }).title,
    'SyntaxError: bad at read.js',
  );
  assert.equal(
    fingerprint({ name: 'E', message: 'm', stack: 'E: m\n    at JSON.parse (<anonymous>)' }).title,
    'E: m at JSON.parse (<anonymous>)',
  );
});

test('a message that looks like stack frames is not taken for them', () => {
  const message = 'child failed:\n    at evil (evil.js:1:1)';
  const stack = `Error: ${message}\n    at parse (/app/invoice.js:1:1)`;
  assert.match(fingerprint({ name: 'Error', message, stack }).title, / at parse \(invoice\.js\)$/);
  const described = describeError(Object.assign(new Error(message), { stack }));
  assert.match(fingerprint(described).title, / at parse \(invoice\.js\)$/);
});

test('what varies in a message is replaced by placeholders', () => {
  const cases: [string, string][] = [
    ['user 17 not found', 'user <num> not found'],
    ['waited -1.5 of 1,000 ms', 'waited <num> of <num> ms'],
    ['connect ECONNREFUSED 10.0.0.12:6379', 'connect ECONNREFUSED <num>'],
    ['job job-17 in queue2', 'job job-<num> in queue<num>'],
    ['bad pointer 0xDEADBEEF', 'bad pointer <num>'],
    ['commit 9fceb02d0ae598e95dc970b74767f19372d61af8 gone', 'commit <num> gone'],
    ['id 01ARZ3NDEKTSV4RRFFQ69G5FAV unknown', 'id <num> unknown'],
    ['node 123e4567-e89b-12d3-a456-426614174000 lost', 'node <uuid> lost'],
    [`Unexpected token 'a', "abc" is not valid JSON`, 'Unexpected token <str>, <str> is not valid JSON'],
    [`it's broken, isn't it, 'yes'`, `it's broken, isn't it, <str>`],
    ['field `total` of “invoice” missing', 'field <str> of <str> missing'],
    [`value "${'x'.repeat(5_000)}" too long`, 'value <str>'],
    ["ENOENT: no such file, open '/tmp/a/b.txt'", 'ENOENT: no such file, open <str>'],
    ['cannot open /var/lib/data/report.pdf: denied', 'cannot open <path>: denied'],
    ['cannot open C:\\data\\report.pdf', 'cannot open <path>'],
    ['cannot open ../x/y or uploads/ab/report or src/main.ts', 'cannot open <path> or <path> or <path>'],
    ['read/write and/or N/A', 'read/write and/or N/A'],
    ['GET https://api.example.com/v1/users?id=4 failed', 'GET <url> failed'],
    ['redis://:pw@host:6379/0 refused', '<url> refused'],
    ['mail to jane.doe+x@mail.example.org bounced', 'mail to <email> bounced'],
    ['at 2025-03-30T01:00:00.123Z and 2025-03-30', 'at <time> and <time>'],
    ['since Sun Mar 30 2025 03:00:00 GMT+0200 (Central European Summer Time) idle', 'since <time> idle'],
    ['expires Sun, 30 Mar 2025 01:00:00 GMT', 'expires <time>'],
    ['\u001b[31mred\u001b[0m\n\ttext\u202e', 'red text'],
  ];
  for (const [message, expected] of cases) assert.equal(titleOf(message), expected);
});

test('numbers of any length and ids of any digits fall into one group', () => {
  const title = titleOf('job 7 failed');
  fc.assert(
    fc.property(fc.oneof(fc.bigInt({ min: 0n, max: 10n ** 40n }).map(String), fc.uuid()), (id) => {
      const expected = id.includes('-') ? title.replace('<num>', '<uuid>') : title;
      assert.equal(titleOf(`job ${id} failed`), expected);
    }),
  );
});

test('the title is one bounded line whatever the error says', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary', maxLength: 700 }),
      fc.string({ unit: 'binary' }),
      (message, name) => {
        const { title } = fingerprint({ name, message, stack: message });
        assert.ok(Buffer.byteLength(title) <= MAX_TITLE_BYTES);
        // oxlint-disable-next-line no-control-regex
        assert.doesNotMatch(title, /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/);
      },
    ),
  );
});

test('hostile messages are normalised quickly', () => {
  for (const unit of [
    'a',
    '1',
    '/',
    '/a',
    'a/',
    '"',
    "'",
    'a@',
    'a.',
    '1:',
    '-',
    'ab1',
    '((',
    'http://',
    '\\',
  ]) {
    const message = unit.repeat(1_000_000 / unit.length);
    const startMs = performance.now();
    fingerprint(describeError(Object.assign(new Error('x'), { message, stack: message })));
    assert.ok(performance.now() - startMs < 250, `slow on ${unit}`);
  }
});

test('an error keeps its class, message and stack', () => {
  class InvoiceError extends Error {}
  const described = describeError(new InvoiceError('no total'));
  assert.equal(described.name, 'InvoiceError');
  assert.equal(described.message, 'no total');
  assert.match(described.stack, /^InvoiceError: no total\n {4}at .*fingerprint\.test/);
  assert.equal(describeError(Object.assign(new Error('x'), { name: 'Named' })).name, 'Named');
  assert.equal(describeError(new Error('')).stack.split('\n')[0], 'Error');
});

test('anything that is thrown is described', () => {
  const cases: [unknown, string, string][] = [
    ['plain text', 'string', 'plain text'],
    [undefined, 'undefined', 'undefined was thrown'],
    [null, 'null', 'null was thrown'],
    [42, 'number', '42'],
    [7n, 'bigint', '7n'],
    [Symbol('s'), 'symbol', 'Symbol(s)'],
    [{ code: 5 }, 'object', '{ code: 5 }'],
    [{ message: 'like an error', name: 'Odd' }, 'Odd', 'like an error'],
    [{ message: 'like an error' }, 'Error', 'like an error'],
    [['a'], 'object', "[ 'a' ]"],
    [Object.create(null), 'object', '[Object: null prototype] {}'],
  ];
  for (const [thrown, name, message] of cases) {
    const described = describeError(thrown);
    assert.deepEqual({ name: described.name, message: described.message }, { name, message });
    assertBounded(described);
  }
});

test('objects that throw when they are touched are described all the same', () => {
  const explode = (): never => {
    throw new Error('touched');
  };
  const traps = { get: explode, has: explode, ownKeys: explode, getPrototypeOf: explode };
  const getters = Object.defineProperties(new Error('x'), {
    stack: { get: explode },
    message: { get: explode },
    name: { get: explode },
    cause: { get: explode },
  });
  const inspected = { [Symbol.for('nodejs.util.inspect.custom')]: explode };
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  const hostile = [new Proxy({}, traps), new Proxy(new Error('x'), traps), getters, inspected, revoked.proxy];
  for (const thrown of hostile) {
    const described = describeError(thrown);
    assert.notEqual(described.message, '');
    assertBounded(described);
    assert.match(fingerprint(described).key, /^[0-9a-f]{16}$/);
  }
});

test('huge messages and stacks are cut by bytes and never inside a character', () => {
  for (const unit of ['a', 'ü', '漢', '😀', '\ud800']) {
    const error = new Error(unit.repeat(200_000));
    const described = describeError(error);
    assertBounded(described);
    assert.ok(Buffer.byteLength(described.message) > MAX_MESSAGE_BYTES - 8);
    assert.ok(described.message.endsWith('…'));
    assert.match(
      described.stack,
      /\n {4}at .*fingerprint\.test/,
      'the frames are not pushed out by the message',
    );
    assert.equal(fingerprint(described).key, fingerprint(error).key, 'cutting does not change the group');
  }
});

test('any string is clipped to its longest start that fits, in whole characters', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.nat(60), (text, maxBytes) => {
      const clipped = clipUtf8(text, maxBytes);
      assert.ok(Buffer.byteLength(clipped) <= maxBytes);
      if (Buffer.byteLength(text) <= maxBytes) assert.equal(clipped, text);
      else if (maxBytes >= 3) assert.ok(clipped.endsWith('…') && text.startsWith(clipped.slice(0, -1)));
      else assert.equal(clipped, '');
    }),
  );
});

test('the chain of causes is folded into message and stack', () => {
  const root = new RangeError('port 99999');
  const error = new Error('fetch failed', { cause: new TypeError('no connection', { cause: root }) });
  const described = describeError(error);
  assert.equal(
    described.message,
    'fetch failed; caused by TypeError: no connection; caused by RangeError: port 99999',
  );
  assert.match(
    described.stack,
    /^Error: fetch failed\n.*\nCaused by: TypeError: .*\nCaused by: RangeError: .*\n/s,
  );
  assertBounded(described);
});

test('of an AggregateError the first error is its cause', () => {
  const described = describeError(new AggregateError([new Error('refused ::1'), new Error('refused')], ''));
  assert.equal(described.name, 'AggregateError');
  assert.equal(described.message, 'caused by Error: refused ::1');
});

test('a chain of causes that is endless or goes in a circle is cut', () => {
  const circle = new Error('a');
  circle.cause = new Error('b', { cause: circle });
  assert.equal(describeError(circle).message, 'a; caused by Error: b');
  let endless: Error = new Error('0');
  for (let depth = 1; depth < 1_000; depth++) endless = new Error(String(depth), { cause: endless });
  const described = describeError(endless);
  assert.equal(described.message.split('; ').length, 5);
  assertBounded(described);
});
