// Who somebody is by their headers, and what that allows.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSluiceError } from '@sluice/base';
import { Access, demand, roles, type ConfiguredKey, type Demand, type Principal } from '../src/index.js';

const keys: ConfiguredKey[] = [
  { tenant: 'acme', key: 'acme-admin-0123456789' },
  { tenant: 'acme', role: 'viewer', key: 'acme-viewer-0123456789' },
  { tenant: '*', role: 'operator', key: 'all-operator-0123456789' },
];
const access = new Access({ keys, secret: 'only for this test' });

function bearer(key: string, tenant?: string) {
  return { authorization: `Bearer ${key}`, ...(tenant !== undefined && { 'x-sluice-tenant': tenant }) };
}

function refusal(action: () => unknown): string | undefined {
  try {
    action();
    return undefined;
  } catch (error) {
    return isSluiceError(error) ? error.code : String(error);
  }
}

test('a key of a tenant is an admin of it unless its role says otherwise', () => {
  const admin = access.identify(bearer('acme-admin-0123456789'));
  assert.deepEqual(
    [admin.tenant, admin.installation, admin.role, admin.via],
    ['acme', false, 'admin', 'key'],
  );
  assert.equal(access.identify(bearer('acme-viewer-0123456789')).role, 'viewer');
});

test('a key of the installation acts for the tenant that is named, a key of a tenant for its own only', () => {
  const key = 'all-operator-0123456789';
  assert.equal(access.identify(bearer(key)).tenant, 'default');
  const principal = access.identify(bearer(key, 'acme'));
  assert.deepEqual([principal.tenant, principal.installation, principal.role], ['acme', true, 'operator']);
  for (const tenant of ['*', '', 'a b', '../x', 'x'.repeat(101)])
    assert.equal(
      refusal(() => access.identify(bearer(key, tenant))),
      'TENANT_INVALID',
    );
  assert.equal(access.identify(bearer('acme-viewer-0123456789', 'acme')).tenant, 'acme');
  assert.equal(
    refusal(() => access.identify(bearer('acme-viewer-0123456789', 'other'))),
    'FORBIDDEN',
  );
});

test('a route is open to its role and those above, of the installation to keys of the installation only', () => {
  const base: Principal = { tenant: 'acme', installation: false, role: 'viewer', via: 'key', rules: {} };
  for (const [held, role] of roles.entries())
    for (const [needed, needs] of roles.entries())
      for (const installation of [false, true])
        for (const of of ['tenant', 'installation'] as const) {
          const asked: Demand = { needs, of };
          const isAllowed = held >= needed && (of === 'tenant' || installation);
          const outcome = refusal(() => demand(asked, { ...base, role, installation }));
          assert.equal(outcome, isAllowed ? undefined : 'FORBIDDEN', JSON.stringify({ asked, role }));
        }
});

test('a token is enough only where a route says so', () => {
  const maker = access.identify(bearer('acme-admin-0123456789'));
  const token = access.makeToken(maker, { drive: 'main' }, new Date(Date.now() + 60_000));
  const holder = access.identify(bearer(token));
  assert.deepEqual([holder.via, holder.installation, holder.tenant], ['token', false, 'acme']);
  assert.equal(
    refusal(() => demand({ needs: 'viewer', of: 'tenant' }, holder)),
    'FORBIDDEN',
  );
  demand({ needs: 'operator', of: 'tenant', tokens: true }, holder);
});

test('without keys everybody is an admin of the installation; with keys nobody without one is anything', () => {
  const open = new Access({ keys: [], secret: 'only for this test' });
  const { tenant, installation, role, via } = open.identify({});
  assert.deepEqual([tenant, installation, role, via], ['default', true, 'admin', 'open']);
  assert.equal(
    refusal(() => open.identify(bearer('anything'))),
    'UNAUTHENTICATED',
  );
  assert.equal(
    refusal(() => access.identify({})),
    'UNAUTHENTICATED',
  );
});
