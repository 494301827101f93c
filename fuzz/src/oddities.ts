// Values that programs stumble over, as texts and as JSON. Nothing here reaches beyond this machine: names of hosts end in `.invalid`.
import type { Random } from '@sluice/testbed/random';

const long = 'x'.repeat(20_000);

const texts = [
  '',
  ' ',
  '.',
  '..',
  '../../../../etc/passwd',
  '..%2f..%2fetc%2fpasswd',
  '....//....//',
  '/',
  '//',
  '\\',
  'a/b/c',
  '%',
  '%00',
  '%ff%fe',
  '%c0%ae%c0%ae/',
  '\u0000',
  'a\u0000b',
  '\r\nX-Injected: yes',
  '\t\u001b[31m',
  '\u007f',
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  'null',
  'undefined',
  'true',
  'NaN',
  'Infinity',
  '-0',
  '-1',
  '0',
  '1e309',
  '0x10',
  '１２',
  '9007199254740993',
  '99999999999999999999999999',
  '1.5',
  '2026-02-30T25:61:61Z',
  '-271821-04-20T00:00:00Z',
  "' OR 1=1 --",
  '"; DROP TABLE nodes; --',
  '$1',
  '${7*7}',
  '{{7*7}}',
  '<script>alert(1)</script>',
  '*',
  '?',
  '#',
  '&a=b',
  '{}',
  '[]',
  '{tag}',
  '{a:0}:jobs',
  '.*.*.*.*.*.*.*.*.*.*$',
  '(a+)+$',
  '[',
  '\ud800',
  '\udfff\ud800',
  '😀'.repeat(300),
  'İıſK',
  'e\u0301\u0301\u0301',
  '\u202egnp.exe',
  '\ufeff',
  '\u2028',
  'ﷺ'.repeat(100),
  'CON',
  'name.',
  'https://hooks.invalid/a?b=c',
  'http://169.254.169.254/latest/meta-data',
  'http://[::1]:1/',
  'file:///etc/passwd',
  '0-0',
  '18446744073709551615-18446744073709551615',
  '00000000-0000-0000-0000-000000000000',
  'bytes=0-',
  'bytes=-0',
  'bytes=9-1,0-0',
  'bytes 0-0/1',
  'W/"x"',
  '"',
  long,
];

export function oddText(random: Random): string {
  return random.pick(texts);
}

export function oddJson(random: Random): unknown {
  const values: (() => unknown)[] = [
    () => null,
    () => true,
    () => 0,
    () => -1,
    () => 1.5,
    () => 2 ** 53,
    () => 1e308,
    () => [],
    () => ({}),
    () => [[]],
    () => [null],
    () => ({ length: -1 }),
    () => JSON.parse('{"__proto__":{"polluted":true}}') as unknown,
    () => ({ constructor: { prototype: { polluted: true } } }),
    () => Array.from({ length: 300 }, (_, index) => index),
    () => nested(random.between(2, 60)),
    () => oddText(random),
    () => oddText(random),
    () => oddText(random),
  ];
  return random.pick(values)();
}

/** Bodies that are no JSON, or that no program would write. */
export function oddBody(random: Random, valid: string): string | Buffer {
  const bodies: (() => string | Buffer)[] = [
    () => '',
    () => '{',
    () => valid.slice(0, random.between(0, valid.length)),
    () => `${valid}${valid}`,
    () => `\ufeff${valid}`,
    () => '['.repeat(50_000),
    () => '{"a":'.repeat(20_000),
    () => `${'['.repeat(5_000)}${']'.repeat(5_000)}`,
    () => '{"a":1,"a":2,"__proto__":{"polluted":true}}',
    () => '{"a":1e999,"b":-0,"c":0.1e-400}',
    () => 'null',
    () => '"text"',
    () => 'NaN',
    () => `{"a":"${'x'.repeat(1_200_000)}"}`,
    () => `{${Array.from({ length: 5_000 }, (_, index) => `"k${index}":${index}`).join(',')}}`,
    () => Buffer.from([0xff, 0xfe, 0x00, 0x7b, 0x22, 0xc3, 0x28, 0x22, 0x7d]),
    () => Buffer.from(`{"drive":"main","path":"\xc3\x28"}`, 'latin1'),
    () => Buffer.from(valid, 'utf16le'),
    () => 'a=b&c=d',
    () => '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n--x--\r\n',
  ];
  return random.pick(bodies)();
}

export const oddTypes = [
  'application/json; charset=utf-16',
  'application/json; charset=nonsense',
  'application/jsonx',
  'application/merge-patch+json',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'text/plain',
  'text/html',
  '*/*',
  ';',
  '/',
  `a/${'b'.repeat(300)}`,
];

export const oddMethods = ['OPTIONS', 'TRACE', 'PROPFIND', 'SEARCH', 'MKCOL', 'LINK', 'PURGE', 'QUERY'];

export function oddHeaders(random: Random): Record<string, string> {
  const text = oddText(random);
  const headers: Record<string, string>[] = [
    { 'X-Sluice-Tenant': text },
    { 'X-Request-Id': text },
    { 'X-HTTP-Method-Override': 'DELETE' },
    { 'X-Forwarded-For': text, 'X-Forwarded-Host': text, 'X-Forwarded-Proto': text },
    { Origin: random.pick(['null', 'https://evil.invalid', 'http://localhost', text]) },
    { Host: random.pick(['evil.invalid', 'localhost', text]) },
    { Cookie: `sluice_session=${text}; a=${text}` },
    { Range: text },
    { 'If-Match': text },
    { 'If-None-Match': text },
    { 'If-Modified-Since': text },
    { 'If-Range': text },
    { 'Idempotency-Key': text },
    { 'Last-Event-ID': text },
    { 'Content-Digest': text },
    { 'Repr-Digest': `sha-256=:${text}:` },
    { 'Content-Range': text },
    { 'Content-Encoding': random.pick(['gzip', 'br', text]) },
    { 'X-Sluice-Meta-__proto__': text },
    { 'X-Sluice-CSRF': text, 'Sec-Fetch-Site': random.pick(['cross-site', 'same-origin', text]) },
    { Accept: text, 'Accept-Encoding': text },
    { 'Access-Control-Request-Method': 'DELETE', 'Access-Control-Request-Headers': text },
    { traceparent: text },
    { 'Content-Type': random.pick(oddTypes) },
  ];
  return random.pick(headers);
}

function nested(depth: number): unknown {
  let value: unknown = 'deep';
  for (let level = 0; level < depth; level++) value = level % 2 === 0 ? [value] : { a: value };
  return value;
}
