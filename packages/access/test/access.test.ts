// Who somebody is by their headers, and what that allows.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSluiceError } from '@sluice/base';
import {
  Access,
  demand,
  roles,
  type ConfiguredKey,
  type Demand,
  type Headers,
  type Principal,
} from '../src/index.js';

const keys: ConfiguredKey[] = [
  { tenant: 'acme', key: 'acme-admin-0123456789' },
  { tenant: 'acme', role: 'viewer', key: 'acme-viewer-0123456789' },
  { tenant: '*', role: 'operator', key: 'all-operator-0123456789' },
];
const access = new Access({ keys, secret: 'only for this test' });

function bearer(key: string, tenant?: string): Headers {
  return { authorization: `Bearer ${key}`, ...(tenant !== undefined && { 'x-sluice-tenant': tenant }) };
}

async function refusal(action: () => unknown): Promise<string | undefined> {
  try {
    await action();
    return undefined;
  } catch (error) {
    return isSluiceError(error) ? error.code : String(error);
  }
}

test('a key of a tenant is an admin of it unless its role says otherwise', async () => {
  const admin = await access.identify(bearer('acme-admin-0123456789'));
  assert.deepEqual(
    [admin.tenant, admin.installation, admin.role, admin.via],
    ['acme', false, 'admin', 'key'],
  );
  assert.equal((await access.identify(bearer('acme-viewer-0123456789'))).role, 'viewer');
});

test('a key of the installation acts for the tenant that is named, a key of a tenant for its own only', async () => {
  const key = 'all-operator-0123456789';
  assert.equal((await access.identify(bearer(key))).tenant, 'default');
  const principal = await access.identify(bearer(key, 'acme'));
  assert.deepEqual([principal.tenant, principal.installation, principal.role], ['acme', true, 'operator']);
  for (const tenant of ['*', '', 'a b', '../x', 'x'.repeat(101)])
    assert.equal(await refusal(() => access.identify(bearer(key, tenant))), 'TENANT_INVALID', tenant);
  assert.equal((await access.identify(bearer('acme-viewer-0123456789', 'acme'))).tenant, 'acme');
  const elsewhere = bearer('acme-viewer-0123456789', 'other');
  assert.equal(await refusal(() => access.identify(elsewhere)), 'FORBIDDEN');
});

test('a route is open to its role and those above, of the installation to keys of the installation only', async () => {
  const base: Principal = { tenant: 'acme', installation: false, role: 'viewer', via: 'key', rules: {} };
  for (const [held, role] of roles.entries())
    for (const [needed, needs] of roles.entries())
      for (const installation of [false, true])
        for (const of of ['tenant', 'installation'] as const) {
          const asked: Demand = { needs, of };
          const isAllowed = held >= needed && (of === 'tenant' || installation);
          const outcome = await refusal(() => demand(asked, { ...base, role, installation }));
          assert.equal(outcome, isAllowed ? undefined : 'FORBIDDEN', JSON.stringify({ asked, role }));
        }
});

test('a token is enough only where a route says so', async () => {
  const maker = await access.identify(bearer('acme-admin-0123456789'));
  const token = access.makeToken(maker, { drive: 'main' }, new Date(Date.now() + 60_000));
  const holder = await access.identify(bearer(token));
  assert.deepEqual([holder.via, holder.installation, holder.tenant], ['token', false, 'acme']);
  assert.equal(await refusal(() => demand({ needs: 'viewer', of: 'tenant' }, holder)), 'FORBIDDEN');
  demand({ needs: 'operator', of: 'tenant', tokens: true }, holder);
});

test('without keys everybody is an admin of the installation; with keys nobody without one is anything', async () => {
  const open = new Access({ keys: [], secret: 'only for this test' });
  const { tenant, installation, role, via } = await open.identify({});
  assert.deepEqual([tenant, installation, role, via], ['default', true, 'admin', 'open']);
  assert.equal(await refusal(() => open.identify(bearer('anything'))), 'UNAUTHENTICATED');
  assert.equal(await refusal(() => access.identify({})), 'UNAUTHENTICATED');
  // A server that others can reach is never open, whatever becomes of its keys.
  const reachable = new Access({ keys: [], secret: 'only for this test', mayBeOpen: false });
  assert.equal(reachable.isOpen, false);
  assert.equal(await refusal(() => reachable.identify({})), 'UNAUTHENTICATED');
});
