// Where Redis is, written as a URL: what is understood, what is refused, and that no password is told.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSluiceError } from '@sluice/base';
import { RedisLink, describeTarget, parseTarget } from '../src/index.js';
import type { RedisTarget } from '../src/index.js';

test('every shape of a target is understood', () => {
  const one = (host: string, port: number) => [{ host, port }];
  const shapes: [string, RedisTarget][] = [
    ['redis://localhost', { mode: 'single', hosts: one('localhost', 6379) }],
    ['redis://10.0.0.1:7000/3', { mode: 'single', hosts: one('10.0.0.1', 7000), db: 3 }],
    ['redis://[::1]:7000', { mode: 'single', hosts: one('::1', 7000) }],
    ['redis://:secret@h', { mode: 'single', hosts: one('h', 6379), password: 'secret' }],
    [
      'redis://ada:p%40ss%3A%2F@h',
      { mode: 'single', hosts: one('h', 6379), username: 'ada', password: 'p@ss:/' },
    ],
    ['rediss://h:1', { mode: 'single', hosts: one('h', 1), tls: {} }],
    [
      'rediss://h:1/0?caFile=/etc/ca.pem&certFile=/c&keyFile=/k&serverName=redis.internal',
      {
        mode: 'single',
        hosts: one('h', 1),
        db: 0,
        tls: { caFile: '/etc/ca.pem', certFile: '/c', keyFile: '/k', serverName: 'redis.internal' },
      },
    ],
    [
      'redis+cluster://a:1,b:2',
      {
        mode: 'cluster',
        hosts: [
          { host: 'a', port: 1 },
          { host: 'b', port: 2 },
        ],
      },
    ],
    ['rediss+cluster://a', { mode: 'cluster', hosts: one('a', 6379), tls: {} }],
    [
      'redis+sentinel://u:p@s:26379/main',
      { mode: 'sentinel', hosts: one('s', 26379), master: 'main', username: 'u', password: 'p' },
    ],
    [
      'redis+sentinel://s/main?sentinelUsername=watch&sentinelPassword=a%2Fb',
      {
        ...{ mode: 'sentinel', hosts: one('s', 6379), master: 'main' },
        ...{ sentinelUsername: 'watch', sentinelPassword: 'a/b' },
      },
    ],
    ['rediss+sentinel://s/main', { mode: 'sentinel', hosts: one('s', 6379), master: 'main', tls: {} }],
  ];
  for (const [url, target] of shapes) assert.deepEqual(parseTarget(url), target, url);
  for (const [, target] of shapes) assert.equal(parseTarget(target), target, 'an object is taken as it is');
});

test('a wrong target is refused with the reason, before anything is connected', () => {
  const wrong: [string | RedisTarget, RegExp][] = [
    ['', /not a URL/],
    ['localhost:6379', /not a URL/],
    ['http://localhost', /scheme "http"/],
    ['redis://a:1,b:2', /one host/],
    ['redis://a:0', /port 0/],
    ['redis://a:70000', /port 70000/],
    ['redis://a:b', /not host:port/],
    ['redis://a/main', /not a database number/],
    ['redis://a/-1', /not a database number/],
    ['redis+cluster://a/1', /only database 0/],
    ['redis+sentinel://a', /master group/],
    ['redis://a?sentinelPassword=x', /"sentinelPassword" means nothing here/],
    ['redis://u:100%@h', /%/],
    ['redis://h?caFile=/etc/ca.pem', /"caFile" means nothing/],
    ['rediss://h?cafile=/etc/ca.pem', /"cafile" means nothing/],
    [{ mode: 'single', hosts: [] }, /no hosts/],
    [{ mode: 'sentinel', hosts: [{ host: 'h', port: 1 }] }, /master group/],
  ];
  for (const [target, reason] of wrong) {
    assert.throws(
      () => new RedisLink(target),
      (error) => isSluiceError(error, 'REDIS_TARGET') && reason.test(error.message) && !error.retryable,
      JSON.stringify(target),
    );
  }
});

test('a certificate that cannot be read is refused by name', () => {
  assert.throws(
    () => new RedisLink('rediss://localhost:1?caFile=/nowhere/ca.pem'),
    (error) => isSluiceError(error, 'REDIS_TARGET') && error.message.includes('/nowhere/ca.pem'),
  );
});

test('no message and no description tells a password', () => {
  for (const url of [
    'redis://ada:geheim@a:0',
    'redis://ada:ge:heim@a:0',
    'redis://:geheim@a:b',
    'redis://ada:ge@heim@h:0',
    'redis+sentinel://s/?sentinelPassword=geheim',
  ]) {
    assert.throws(
      () => parseTarget(url),
      (error: Error) => !/heim/.test(error.message) && error.message.includes('***'),
      url,
    );
  }
  assert.equal(describeTarget(parseTarget('redis://ada:geheim@a:1')), 'single a:1');
  assert.equal(
    describeTarget(parseTarget('redis+sentinel://ada:geheim@a:1,b:2/main')),
    'sentinel a:1,b:2/main',
  );
});
