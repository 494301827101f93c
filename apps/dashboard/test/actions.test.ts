/** What people do on the page, in a real browser against a stand-in that remembers what it was asked. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { chromiumProblem, startBrowser, waitUntil, type Browser } from '@sluice/testbed';
import type { Page } from 'playwright-core';
import { startStandIn, type StandIn } from './standIn.js';

const noBrowser = chromiumProblem() ?? false;
let browser: Browser;
let standIn: StandIn;

before(async () => {
  if (!noBrowser) browser = await startBrowser();
});

beforeEach(async () => {
  if (noBrowser) return;
  await standIn?.close();
  standIn = await startStandIn('busy');
});

after(async () => {
  await browser?.close();
  await standIn?.close();
});

test(
  'a paused queue is resumed from the overview, with the proof that the page asked',
  { skip: noBrowser },
  async () => {
    const page = await open('/');
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByText('mail starts jobs again.').waitFor();
    const asked = standIn.requests.find(({ line }) => line.startsWith('POST'))!;
    assert.equal(asked.line, 'POST /v1/queues/mail/resume');
    assert.equal(asked.csrf, 'proof');
    await page.context().close();
  },
);

test('dead letters are replayed after a dry run, with a rate', { skip: noBrowser }, async () => {
  const page = await open('/dead');
  await page.getByRole('button', { name: /^Replay 12 letters of “StorageTimeout/ }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('12 jobs of document will run again').waitFor();
  await dialog.getByLabel('At most per second').fill('50');
  await dialog.getByRole('button', { name: 'Replay 12 letters' }).click();
  await page.getByText('Started; the progress is on this page.').waitFor();
  const [dry, real] = standIn.requests.filter(({ line }) => line === 'POST /v1/queues/document/dead/replay');
  assert.deepEqual(JSON.parse(dry!.body), { choice: { fingerprint: 'f0' }, dryRun: true });
  assert.deepEqual(JSON.parse(real!.body), { choice: { fingerprint: 'f0' }, perSecond: 50 });
  await page.context().close();
});

test('chosen letters are discarded, and nothing before somebody agrees', { skip: noBrowser }, async () => {
  const page = await open('/dead?queue=document');
  await page.getByLabel('Choose 01JCX8DEAD0').check();
  await page.getByLabel('Choose 01JCX8DEAD2').check();
  await page.getByRole('button', { name: 'Discard chosen' }).click();
  await page.getByRole('dialog').getByText('This cannot be undone').waitFor();
  const sent = (): string[] =>
    standIn.requests.filter(({ line }) => line.endsWith('/discard')).map(({ body }) => body);
  assert.equal(sent().length, 1);
  await page.getByRole('dialog').getByRole('button', { name: 'Discard 12 letters' }).click();
  await page.getByText('Started; the progress is on this page.').waitFor();
  assert.deepEqual(JSON.parse(sent()[1]!), { choice: { ids: ['01JCX8DEAD0', '01JCX8DEAD2'] } });
  await page.context().close();
});

test(
  'a dead job is edited, the difference is shown, and it is replayed with the new data',
  { skip: noBrowser },
  async () => {
    const page = await open('/jobs/document/17');
    await page.getByRole('button', { name: 'Edit and replay' }).click();
    const data = page.getByRole('dialog').getByLabel('Data');
    const text = await data.inputValue();
    await data.fill('{ "pages": 13 ');
    await page.getByText('This is no JSON').waitFor();
    await data.fill(text.replace('"pages": 12', '"pages": 13'));
    const diff = page.getByRole('region', { name: 'What changes' });
    await diff.getByText('"pages": 12').waitFor();
    await diff.getByText('"pages": 13').waitFor();
    await page.getByRole('button', { name: 'Replay with these data' }).click();
    await page.getByText('17 runs again.').waitFor();
    const asked = standIn.requests.find(({ line }) => line === 'POST /v1/queues/document/jobs/17/replay')!;
    assert.equal((JSON.parse(asked.body) as { data: { pages: number } }).data.pages, 13);
    await page.context().close();
  },
);

test('filters stand in the address, and the address brings them back', { skip: noBrowser }, async () => {
  const page = await open('/jobs?queue=document');
  await page.getByLabel('Payload field').fill('user.id');
  await page.getByLabel('is', { exact: true }).fill('17');
  await page.getByRole('button', { name: 'Search' }).click();
  await page.waitForURL(/field=user\.id&equals=17/);
  await page.getByRole('navigation', { name: 'State' }).getByRole('link', { name: /^dead/ }).click();
  await page.waitForURL(/state=dead/);
  await page.reload();
  assert.equal(await page.getByLabel('Payload field').inputValue(), 'user.id');
  const isAsked = (): boolean =>
    standIn.requests.some(({ line }) => /jobs\?state=dead&field=user\.id&equals=17/.test(line));
  await waitUntil('the list is asked for', isAsked, { timeoutMs: 30_000 });
  await page.context().close();
});

test('the keyboard is enough: search, help, rows, pages', { skip: noBrowser }, async () => {
  const page = await open('/queues');
  await page.getByRole('link', { name: 'document', exact: true }).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('grap');
  await page.getByRole('option', { name: /^graph/ }).waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/queues\/graph$/);
  // Two keys belong together when they come within a moment of each other; a busy machine may take longer.
  await waitUntil('the list of queues', async () => {
    await page.keyboard.press('g');
    await page.keyboard.press('q');
    return page.url().endsWith('/queues');
  });
  await page.getByRole('link', { name: 'audio', exact: true }).waitFor();
  // A name that begins with a sign stands first.
  for (const key of 'jjjk') await page.keyboard.press(key);
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/queues\/audio$/);
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.context().close();
});

test('somebody without a session signs in with a key, and out again', { skip: noBrowser }, async () => {
  standIn.signedIn = false;
  const page = await open('/queues');
  await page.getByLabel('Key').fill('wrong');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('this key opens nothing').waitFor();
  await page.getByLabel('Key').fill('right');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Queues', level: 1 }).waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in to Sluice' }).waitFor();
  await page.context().close();
});

test('a viewer is offered nothing that the server would refuse', { skip: noBrowser }, async () => {
  standIn.role = 'viewer';
  const page = await open('/dead?queue=document');
  const button = page.getByRole('button', { name: /^Replay 12 letters of “StorageTimeout/ });
  assert.equal(await button.isDisabled(), true);
  assert.equal(await page.getByRole('link', { name: 'Audit' }).count(), 0);
  await page.context().close();
});

test('a key of a tenant sees the pages of a tenant only', { skip: noBrowser }, async () => {
  standIn.installation = false;
  const page = await open('/');
  await page.getByText('This concerns the whole installation').waitFor();
  const links = await page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allTextContents();
  assert.ok(links.includes('Jobs') && !links.includes('Workers') && !links.includes('Cache'));
  await page.context().close();
});

test('a server that goes away is missed within seconds, and found again', { skip: noBrowser }, async () => {
  const page = await open('/');
  await page.getByText('live', { exact: true }).waitFor();
  standIn.isDown = true;
  await page.getByText('no connection').waitFor();
  // What was known stays on the page, and is called old.
  await page.getByRole('heading', { name: 'Needs attention' }).waitFor();
  await page.getByRole('alert').filter({ hasText: 'The server does not answer. The figures' }).waitFor();
  standIn.isDown = false;
  await page.getByText('live', { exact: true }).waitFor({ timeout: 60_000 });
  await page.getByText('The figures are the last').waitFor({ state: 'detached' });
  await page.context().close();
});

test('two viewers see the same change', { skip: noBrowser }, async () => {
  const pages = await Promise.all([open('/'), open('/')]);
  for (const page of pages) await page.getByText('paused: no job is started').waitFor();
  standIn.scene = 'empty';
  for (const page of pages) await page.getByText('all clear').waitFor();
  for (const page of pages) await page.context().close();
});

test('a theme that was chosen stays chosen', { skip: noBrowser }, async () => {
  const page = await open('/');
  await page.getByRole('button', { name: 'Theme: system' }).click();
  await page.getByRole('button', { name: 'Theme: light' }).click();
  await page.getByRole('button', { name: 'Theme: dark' }).waitFor();
  await page.reload();
  await page.getByRole('button', { name: 'Theme: dark' }).waitFor();
  assert.equal(await page.evaluate('getComputedStyle(document.documentElement).colorScheme'), 'dark');
  await page.context().close();
});

async function open(path: string): Promise<Page> {
  const context = await browser.newContext({
    viewport: { width: 1_440, height: 900 },
    reducedMotion: 'reduce',
  });
  const page = await context.newPage();
  await page.goto(standIn.url + path);
  return page;
}
