/** News disturb nobody, in a real browser: the focus stays where it is, and so does a question that is open, with what was written in it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@sluice/testbed';
import type { Page } from 'playwright-core';
import { groupsOf } from './scenes.js';
import { useStage } from './stage.js';

const stage = useStage();

test('the button that leads on keeps the focus while the list is asked for again', stage.needs, async () => {
  stage.standIn.twist = (value, address) =>
    address?.pathname === '/v1/retries' ? { ...(value as object), next: 'rest' } : value;
  const page = await stage.open('/retries');
  const more = page.getByRole('button', { name: 'Show more' });
  await more.focus();
  await page.route('**/v1/retries?*', () => {});
  await page.waitForRequest('**/v1/retries?*');
  await drawn(page);
  assert.equal(await more.evaluate((button) => button === button.ownerDocument.activeElement), true);
  assert.equal(await more.getAttribute('aria-disabled'), 'false');
});

test('a question about a row outlives the row', stage.needs, async () => {
  const page = await stage.open('/retries');
  await page.getByRole('button', { name: 'Cancel 01JCX7RETRY1' }).click();
  await page.getByRole('dialog').getByText('01JCX7RETRY1 ends').waitFor();
  let isGone = true;
  stage.standIn.twist = (value, address) =>
    isGone && address?.pathname === '/v1/retries' ? { items: [], next: null } : value;
  await page.getByText('Nothing waits for another attempt').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel it' }).click();
  await page.getByText('01JCX7RETRY1 is cancelled').waitFor();
  assert.equal(asked('POST /v1/queues/audio/jobs/01JCX7RETRY1/cancel').length, 1);
  // Its button is gone, too: the next best place is the page.
  await waitUntil('the focus on the page', async () => (await focused(page)) === 'page');
  isGone = false;
});

test('a rate that somebody writes outlives the cause that it is for', stage.needs, async () => {
  const page = await stage.open('/dead');
  await page.getByRole('button', { name: /^Replay 12 letters of “StorageTimeout/ }).click();
  await page.getByRole('dialog').getByLabel('At most per second').fill('50');
  const groups = groupsOf('busy', Date.now());
  stage.standIn.otherwise = (_method, { pathname }) =>
    pathname === '/v1/dead/groups' ? [200, { ...groups, items: groups.items.slice(1) }] : undefined;
  await page.getByRole('link', { name: /^StorageTimeout/ }).waitFor({ state: 'detached' });
  await page.getByRole('dialog').getByRole('button', { name: 'Replay 12 letters' }).click();
  await page.getByText('Started; the progress is on this page.').waitFor();
  assert.deepEqual(asked('POST /v1/queues/document/dead/replay')[1], {
    choice: { fingerprint: 'f0' },
    perSecond: 50,
  });
});

test('data that somebody edits outlive the job', stage.needs, async () => {
  const page = await stage.open('/jobs/document/17');
  await page.getByRole('button', { name: 'Edit and replay' }).click();
  const data = page.getByRole('dialog').getByLabel('Data');
  await data.fill('{ "half": "written" }');
  stage.standIn.otherwise = (_method, { pathname }) =>
    pathname === '/v1/queues/document/jobs/17'
      ? [404, { error: { code: 'JOB_NOT_FOUND', message: 'there is no such job' } }]
      : undefined;
  await page.getByText('This job has ended').waitFor();
  assert.equal(await data.inputValue(), '{ "half": "written" }');
});

test('a question goes with the page that it is about', stage.needs, async () => {
  const page = await stage.open('/workers');
  await page.getByRole('link', { name: /^Retries/ }).click();
  await page.getByRole('button', { name: 'Cancel 01JCX7RETRY1' }).click();
  await page.getByRole('dialog').waitFor();
  await page.goBack();
  await page.getByRole('heading', { name: 'Workers', level: 1 }).waitFor();
  await page.locator('dialog').waitFor({ state: 'detached' });
});

test('whoever goes to another page begins in it, and hears its name', stage.needs, async () => {
  const page = await stage.open('/queues');
  await page.getByRole('heading', { name: 'Queues', level: 1 }).waitFor();
  // The first page is where the browser begins, with the link that leads past the navigation.
  assert.equal(await focused(page), '');
  const navigation = page.getByRole('navigation', { name: 'Pages' });
  for (const title of ['Workers', 'Jobs', 'Workers']) {
    await navigation.getByRole('link', { name: new RegExp(`^${title}`) }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('main', { name: title, exact: true }).waitFor();
    await waitUntil(`the focus on ${title}`, async () => (await focused(page)) === 'page');
  }
  await page.goBack();
  await page.getByRole('main', { name: 'Jobs', exact: true }).waitFor();
  await waitUntil('the focus on the page', async () => (await focused(page)) === 'page');
  // Another question on the same page takes nobody away.
  const tab = page.getByRole('navigation', { name: 'State' }).getByRole('link', { name: /^dead/ });
  await tab.focus();
  await page.keyboard.press('Enter');
  await page.waitForURL(/state=dead/);
  await drawn(page);
  assert.equal(await tab.evaluate((link) => link === link.ownerDocument.activeElement), true);
});

/** The id of what has the focus. */
async function focused(page: Page): Promise<string> {
  return (await page.evaluate('document.activeElement?.id')) as string;
}

/** Until what has happened so far is on the page. */
async function drawn(page: Page): Promise<void> {
  await page.evaluate('new Promise((done) => requestAnimationFrame(() => setTimeout(done)))');
}

/** The bodies of what was asked for, with nothing for an empty one. */
function asked(line: string): unknown[] {
  return stage.standIn.requests
    .filter((request) => request.line === line)
    .map(({ body }) => (body === '' ? null : (JSON.parse(body) as unknown)));
}
