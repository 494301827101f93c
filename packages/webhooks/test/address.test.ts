// Which addresses a webhook may reach, in every spelling that a URL allows.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSluiceError } from '@sluice/base';
import { AllowedNetworks } from '../src/index.js';
import { checkUrl, findTarget } from '../src/target.js';

const publicOnly = new AllowedNetworks();
const refused = (code: string) => (error: unknown) => isSluiceError(error, code);
const never = (): Promise<string[]> => assert.fail('an address must not be looked up');

test('addresses that are not public are refused, whatever family and disguise', () => {
  const addresses = [
    ...['0.0.0.0', '0.1.2.3', '10.0.0.1', '100.64.0.1', '100.127.255.255', '127.0.0.1', '127.255.255.254'],
    ...['169.254.169.254', '172.16.0.1', '172.31.255.255', '192.0.0.1', '192.0.2.1', '192.88.99.1'],
    ...['192.168.0.1', '198.18.0.1', '198.19.255.255', '198.51.100.7', '203.0.113.7'],
    ...['224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255'],
    ...['::', '::1', '::127.0.0.1', '::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:8.8.8.8'],
    ...['64:ff9b::7f00:1', '64:ff9b::8.8.8.8', '64:ff9b:1::1', '100::1', '2001::1', '2001:0:4136:e378::1'],
    ...['2001:db8::1', '2002:7f00:1::', '2002:a00:1::1', '3fff::1', '5f00::1', 'fc00::1', 'fd12:3456::1'],
    ...['fe80::1', 'fe80::1%lo', 'febf::1', 'fec0::1', 'ff02::1', 'ff0e::1', '', 'localhost', '1.2.3'],
  ];
  for (const address of addresses) assert.equal(publicOnly.reaches(address), false, address);
});

test('public addresses are allowed', () => {
  const addresses = ['8.8.8.8', '1.1.1.1', '100.63.255.255', '100.128.0.0', '172.15.0.1', '172.32.0.1'];
  for (const address of [...addresses, '2606:4700::1111', '2a00:1450:4001::1', '2001:4860:4860::8888'])
    assert.equal(publicOnly.reaches(address), true, address);
});

test('a setting opens networks, and no others', () => {
  const some = new AllowedNetworks(['10.1.0.0/16', '127.0.0.1', 'fd00::/8']);
  for (const address of ['10.1.2.3', '127.0.0.1', 'fd12::1', '8.8.8.8'])
    assert.ok(some.reaches(address), address);
  for (const address of ['10.2.0.1', '127.0.0.2', 'fc00::1', '169.254.169.254'])
    assert.ok(!some.reaches(address), address);
  for (const network of ['', 'x', '10.0.0.0/33', '10.0.0.0/-1', '10.0.0.0/', 'fd00::/129', '10.0.0/8'])
    assert.throws(() => new AllowedNetworks([network]), refused('WEBHOOK_INVALID'), network);
});

test('every spelling of a forbidden address in a URL is recognised without asking anybody', async () => {
  const spellings = [
    ...[
      'http://127.0.0.1/',
      'http://2130706433/',
      'http://0x7f000001/',
      'http://0x7f.1/',
      'http://0177.0.0.1/',
    ],
    ...[
      'http://127.1/',
      'http://127.0.1/',
      'http://017700000001/',
      'http://①②⑦.⓪.⓪.①/',
      'http://127.0.0.1./',
    ],
    ...['http://127。0。0。1/', 'http://%31%32%37.0.0.1/', 'http://0/', 'http://[::1]/', 'http://[::]/'],
    ...['http://[::ffff:127.0.0.1]/', 'http://[::ffff:a9fe:a9fe]/', 'http://[0:0:0:0:0:ffff:7f00:1]/'],
    ...[
      'http://[64:ff9b::127.0.0.1]/',
      'http://[2002:7f00:1::]/',
      'http://169.254.169.254/latest/meta-data/',
    ],
    ...['https://10.0.0.1:8443/', 'http://0xa9fea9fe/'],
  ];
  for (const url of spellings)
    await assert.rejects(findTarget(url, publicOnly, never), refused('ADDRESS_REFUSED'), url);
});

test('a name is refused if any of its addresses is', async () => {
  const both = async () => ['8.8.8.8', '10.0.0.1'];
  await assert.rejects(findTarget('https://example.com/', publicOnly, both), refused('ADDRESS_REFUSED'));
  const none = async () => [];
  await assert.rejects(findTarget('https://example.com/', publicOnly, none), refused('HOST_UNKNOWN'));
  await assert.rejects(findTarget('http://localhost:8080/', publicOnly), refused('ADDRESS_REFUSED'));
  const fine = await findTarget('https://example.com/x', publicOnly, async () => ['8.8.8.8', '2606:4700::1']);
  assert.deepEqual(fine.addresses, ['8.8.8.8', '2606:4700::1']);
});

test('what is no address of a web server is refused', () => {
  const texts = [
    ...['', 'x', '//example.com', 'ftp://example.com/', 'file:///etc/passwd', 'gopher://example.com/'],
    ...['javascript:alert(1)', 'https://user:password@example.com/', 'https://user@example.com/', 'http://'],
    ...['http://example.com:22/', 'http://example.com:25/', 'https://example.com:1023/', 'http://a:99999/'],
    `https://example.com/${'x'.repeat(2_048)}`,
  ];
  for (const text of texts) assert.throws(() => checkUrl(text), refused('WEBHOOK_INVALID'), text);
  for (const text of ['https://example.com/x?y=z', 'http://example.com:8080', 'https://bücher.example/'])
    assert.doesNotThrow(() => checkUrl(text), text);
});
