/** Who sits before the page: what stays behind when they leave, and what each role is offered. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { useStage } from './stage.js';

const stage = useStage();

test('the next person in a tab sees nothing of what the one before saw', stage.needs, async () => {
  const page = await stage.open('/');
  await page.getByText('mail', { exact: true }).first().waitFor();
  // What is told before somebody listens is heard by nobody.
  await page.getByText('live', { exact: true }).waitFor();
  stage.standIn.tell('events', event('secret-event'), '1-1');
  await page.getByRole('link', { name: 'Events', exact: true }).click();
  await page.getByText('secret-event').waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in to Sluice' }).waitFor();
  assert.equal(new URL(page.url()).pathname, '/');
  // The next one is of a tenant, and the server tells them nothing yet.
  stage.standIn.installation = false;
  stage.standIn.scene = 'empty';
  await page.getByLabel('Key').fill('right');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('This concerns the whole installation').waitFor();
  await page.getByRole('link', { name: 'Events', exact: true }).click();
  await page.getByText('Nothing has happened yet').waitFor();
  assert.equal(await page.getByText('secret-event').count(), 0);
  // The search proposes queues that are known.
  await page.keyboard.press('/');
  await page.keyboard.type('mai');
  await page.getByRole('option', { name: /Follow the id/ }).waitFor();
  assert.equal(await page.getByRole('option', { name: /^mail/ }).count(), 0);
});

test('a key that is revoked while a page is open leads to the door', stage.needs, async () => {
  const page = await stage.open('/workers');
  await page.getByRole('cell', { name: 'worker-0', exact: true }).waitFor();
  stage.standIn.signedIn = false;
  await page.getByRole('heading', { name: 'Sign in to Sluice' }).waitFor();
  assert.equal(await page.getByText('worker-0').count(), 0);
});

test('an operator acts, and sees neither keys nor the audit log', stage.needs, async () => {
  stage.standIn.role = 'operator';
  const page = await stage.open('/queues/mail');
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.getByText('mail starts jobs again.').waitFor();
  assert.equal(await page.getByRole('link', { name: 'Audit' }).count(), 0);
  await page.getByRole('link', { name: 'Settings' }).click();
  await page.getByText('Keys and webhooks are for admins').waitFor();
  assert.equal(await page.getByRole('button', { name: 'New key' }).count(), 0);
  assert.ok(!stage.standIn.requests.some(({ line }) => /\/v1\/(keys|webhooks|audit)/.test(line)));
});

function event(eventId: string): object {
  return { cursor: `${Date.now()}-1`, eventId, topic: 'jobs.dead', key: 'k', data: { tenant: 'acme' } };
}
