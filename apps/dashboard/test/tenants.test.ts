/** One key for many tenants: whose files are meant stands in the address, and goes along with every request that is about them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@sluice/testbed';
import { useStage } from './stage.js';

const stage = useStage();

test('an upload of another tenant is cancelled in the name of that tenant', stage.needs, async () => {
  const page = await stage.open('/uploads');
  await page.getByRole('button', { name: 'Cancel films/interview.mp4' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel it' }).click();
  await page.getByText('films/interview.mp4 is cancelled.').waitFor();
  assert.equal(tenantOf('DELETE /v1/uploads/u1'), 'acme');
});

test('files of a chosen tenant are listed, downloaded and deleted in its name', stage.needs, async () => {
  stage.standIn.otherwise = (method, { pathname }) => {
    const link = '/v1/nodes/n1/content?signature=s';
    return method === 'POST' && pathname === '/v1/links'
      ? [201, { url: `https://sluice.example${link}` }]
      : undefined;
  };
  const page = await stage.open('/files');
  await page.getByLabel('Tenant', { exact: true }).fill('acme');
  await page.keyboard.press('Enter');
  await page.waitForURL(/tenant=acme/);
  await waitUntil('drives of acme', () => Promise.resolve(tenantOf('GET /v1/drives') === 'acme'));
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download annual.pdf' }).click();
  // The link is used on this server, whatever it calls itself.
  assert.equal((await download).url(), `${stage.standIn.url}/v1/nodes/n1/content?signature=s`);
  assert.equal(tenantOf('POST /v1/links'), 'acme');
  await page.getByRole('button', { name: 'Delete annual.pdf' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByText('annual.pdf is deleted.').waitFor();
  assert.equal(tenantOf('DELETE /v1/nodes/n1?recursive=false'), 'acme');
  await page.getByRole('link', { name: 'annual.pdf' }).click();
  await page.getByRole('link', { name: 'Follow this file' }).click();
  await page.waitForURL(/\/trace\?id=n1&tenant=acme/);
  await waitUntil('the trace of acme', () => Promise.resolve(tenantOf('GET /v1/trace/n1') === 'acme'));
});

test('tenants that keys, uploads and events name are there to be pressed', stage.needs, async () => {
  stage.standIn.twist = (value, address) =>
    address?.pathname === '/v1/keys' ? { items: ['*', 'globex'].map(keyOf), next: null } : value;
  const page = await stage.open('/files?drive=main&file=n1');
  const known = page.getByRole('navigation', { name: 'Known tenants' });
  await known.getByRole('link', { name: 'globex' }).click();
  // What belongs to the tenant before does not go along.
  await page.waitForURL(/\/files\?tenant=globex$/);
  await waitUntil('drives of globex', () => Promise.resolve(tenantOf('GET /v1/drives') === 'globex'));
  // Some come with the keys, some with the stream.
  await known.getByRole('link', { name: 'acme' }).waitFor();
  assert.deepEqual(await known.getByRole('link').allTextContents(), ['default', 'globex', 'acme']);
  // One that nothing has named yet may be written.
  await page.getByLabel('Tenant', { exact: true }).fill('initech');
  await page.keyboard.press('Enter');
  await page.waitForURL(/tenant=initech/);
  await known.getByRole('link', { name: 'default' }).click();
  await page.waitForURL(/\/files$/);
});

test('an operator of all tenants is offered those that have files on their way', stage.needs, async () => {
  stage.standIn.role = 'operator';
  const page = await stage.open('/uploads');
  const known = page.getByRole('navigation', { name: 'Known tenants' });
  await known.getByRole('link', { name: 'acme' }).click();
  await page.waitForURL(/tenant=acme/);
  assert.deepEqual(await known.getByRole('link').allTextContents(), ['all', 'default', 'acme']);
  assert.ok(stage.standIn.requests.every(({ line }) => !line.includes('/v1/keys')));
});

test('a key of a tenant has no choice, and names none', stage.needs, async () => {
  stage.standIn.installation = false;
  const page = await stage.open('/files?tenant=other');
  await page.getByRole('link', { name: 'annual.pdf' }).waitFor();
  assert.equal(await page.getByLabel('Tenant', { exact: true }).count(), 0);
  assert.ok(stage.standIn.requests.every(({ tenant }) => tenant === undefined));
});

function keyOf(tenant: string): object {
  return { id: tenant, tenant, role: 'viewer', name: tenant, createdAt: new Date().toISOString() };
}

/** The last one that such a request named. */
function tenantOf(line: string): string | undefined {
  return stage.standIn.requests.findLast((request) => request.line === line)?.tenant;
}
