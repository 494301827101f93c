/** A bad day: slow answers, refusals behind a dialog, no TLS, a window that is too narrow, a reload in the middle; in a real browser. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@sluice/testbed';
import type { Page } from 'playwright-core';
import { useStage } from './stage.js';

const stage = useStage();

test('a refusal stands in the dialog that is open, and can be closed there', stage.needs, async () => {
  stage.standIn.otherwise = (_method, { pathname }, body) =>
    pathname.endsWith('/dead/replay') && !body.includes('dryRun')
      ? [503, { error: { code: 'REDIS_UNAVAILABLE', message: 'Redis does not answer' } }]
      : undefined;
  const page = await stage.open('/dead?queue=document');
  await page.getByRole('button', { name: 'Replay all matching' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Replay 12 letters' }).click();
  const refusal = dialog.locator('.toast').filter({ hasText: 'Redis does not answer' });
  await refusal.getByRole('button', { name: 'Close' }).click();
  await refusal.waitFor({ state: 'detached' });
  await dialog.getByRole('button', { name: 'Replay 12 letters' }).click();
  await refusal.waitFor();
  await dialog.getByRole('button', { name: 'Keep them' }).click();
  // What was not closed stays until it is.
  await page.locator('.toast').filter({ hasText: 'Redis does not answer' }).waitFor();
  assert.equal(await page.locator('.toast').count(), 1);
});

test('a rate that is none starts nothing, and certainly not as fast as possible', stage.needs, async () => {
  const page = await stage.open('/dead?queue=document');
  await page.getByRole('button', { name: 'Replay all matching' }).click();
  const start = page.getByRole('dialog').getByRole('button', { name: 'Replay 12 letters' });
  const rate = page.getByLabel('At most per second');
  for (const wrong of ['0', '-3', '1.5', 'e']) {
    await rate.fill('');
    await rate.pressSequentially(wrong);
    await page.getByText('A whole number from 1').waitFor();
    assert.equal(await start.isDisabled(), true, wrong);
  }
  await rate.fill('20');
  await start.click();
  await page.getByText('Started; the progress is on this page.').waitFor();
});

test('without TLS, where browsers give no clipboard, a key can still be copied', stage.needs, async () => {
  const page = await stage.open('/', { permissions: ['clipboard-read', 'clipboard-write'] });
  await page.addInitScript(
    `globalThis.real = navigator.clipboard; Object.defineProperty(navigator, 'clipboard', { value: undefined })`,
  );
  await page.goto(`${stage.standIn.url}/settings`);
  await page.getByRole('button', { name: 'New key' }).click();
  await page.getByLabel('Name').fill('ops');
  await page.getByRole('button', { name: 'Make it' }).click();
  const copy = page.getByRole('dialog').getByRole('button', { name: 'Copy the' });
  // It stands there for a moment only.
  await Promise.all([page.getByRole('dialog').getByText('Copied').waitFor(), copy.click()]);
  assert.equal(await page.evaluate('real.readText()'), 'slk_0123_secret');
  assert.equal(await copy.evaluate((button) => button === button.ownerDocument.activeElement), true);
});

test('whoever comes with a wrong key is not told how programs send one', stage.needs, async () => {
  stage.standIn.signedIn = false;
  stage.standIn.otherwise = (method, { pathname }) =>
    method === 'POST' && pathname === '/v1/session'
      ? [401, { error: { code: 'UNAUTHENTICATED', message: 'send "Authorization: Bearer <key>"' } }]
      : undefined;
  const page = await stage.open('/');
  await page.getByLabel('Key').fill('mistyped');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').getByText('This key opens nothing here').waitFor();
  assert.equal(await page.getByText('Bearer').count(), 0);
});

test('on a phone the menu covers the page, and Escape closes it', stage.needs, async () => {
  const page = await stage.open('/', { viewport: { width: 390, height: 844 } });
  const menu = page.getByRole('button', { name: 'Menu' });
  await menu.click();
  const side = page.getByRole('navigation', { name: 'Pages' });
  const box = (await side.boundingBox())!;
  assert.equal(Math.round(box.y + box.height), 844);
  await page.keyboard.press('Escape');
  await side.waitFor({ state: 'hidden' });
  assert.equal(await menu.evaluate((button) => button === button.ownerDocument.activeElement), true);
});

test('the buttons of a row are in sight in every window, also at twice the size', stage.needs, async () => {
  for (const width of [641, 720, 768, 1_024]) {
    const page = await stage.open('/dead?queue=document', { viewport: { width, height: 900 } });
    for (const path of ['/dead', '/uploads', '/workers', '/settings']) {
      await page.goto(stage.standIn.url + path);
      const buttons = page.locator('td.quiet:last-child .button:last-child');
      await buttons.first().waitFor();
      for (const button of await buttons.all()) {
        const box = (await button.boundingBox())!;
        assert.ok(box.x >= 0 && box.x + box.width <= width, `${path} at ${width}: ${box.x} + ${box.width}`);
      }
    }
  }
});

test('whoever goes back is where they were', stage.needs, async () => {
  const page = await stage.open('/jobs?queue=document', { viewport: { width: 1_440, height: 500 } });
  await page.locator('tbody tr').nth(20).waitFor();
  await page.evaluate('window.scrollTo(0, 400)');
  await page.locator('tbody tr a').nth(12).click();
  await page.getByRole('heading', { name: 'Timeline' }).waitFor();
  assert.equal(await page.evaluate('scrollY'), 0);
  await page.goBack();
  await waitUntil('the page is where it was', async () => (await page.evaluate('scrollY')) === 400);
  // Whoever scrolls meanwhile is not pulled back.
  await page.mouse.move(700, 250);
  await page.mouse.wheel(0, -1_000);
  await waitUntil('the page is at its top', async () => (await page.evaluate('scrollY')) === 0);
  await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))');
  assert.equal(await page.evaluate('scrollY'), 0);
});

test('a value without its field is no search for everything', stage.needs, async () => {
  const page = await stage.open('/jobs?queue=document');
  await page.getByLabel('is', { exact: true }).fill('2003');
  await page.keyboard.press('Enter');
  const field = page.getByLabel('Payload field');
  assert.equal(await field.evaluate((input) => input.matches(':invalid:focus')), true);
  await field.fill('year');
  await page.keyboard.press('Enter');
  await page.waitForURL(/field=year&equals=2003/);
});

test('a page that still sends files does not go without a question', stage.needs, async () => {
  const page = await stage.open('/uploads');
  await page.route('**/v1/uploads*', (route) =>
    route.request().method() === 'POST' ? undefined : route.continue(),
  );
  await choose(page);
  await page.getByText('main/a.txt').waitFor();
  const asked: string[] = [];
  page.on('dialog', (dialog) => {
    asked.push(dialog.type());
    void dialog.accept();
  });
  await page.reload();
  assert.deepEqual(asked, ['beforeunload']);
  await page.reload();
  assert.equal(asked.length, 1);
});

test(
  'which bytes are missing is also said in words, and who has gone silent stands out',
  stage.needs,
  async () => {
    stage.standIn.twist = (value) => {
      const { items } = (value ?? {}) as { items?: { updatedAt?: string }[] };
      if (items?.[0]?.updatedAt) items[0].updatedAt = new Date(Date.now() - 600_000).toISOString();
      return value;
    };
    const page = await stage.open('/uploads');
    await page.getByLabel('2 missing ranges: 40.0 MiB to 48.0 MiB, 60.0 MiB to the end').waitFor();
    const row = page.getByRole('row', { name: /annual\.pdf/ });
    await row.locator('.text-warn').getByText('10 min ago').waitFor();
    assert.equal(
      await page
        .getByRole('row', { name: /interview\.mp4/ })
        .locator('.text-warn')
        .count(),
      0,
    );
  },
);

test(
  'below a list stands how many are in it, those included that the stream brought',
  stage.needs,
  async () => {
    const page = await stage.open('/events');
    await page.getByText('8 events', { exact: true }).waitFor();
    stage.standIn.tell('events', {
      ...{ cursor: `${Date.now() + 1_000}-0`, eventId: 'fresh', topic: 'repository.documents.created' },
      data: {},
    });
    await page.getByText('9 events', { exact: true }).waitFor();
  },
);

test('a server that has fallen silent is not called live', stage.needs, async () => {
  const page = await stage.open('/queues');
  await page.getByRole('status').getByText('live').waitFor();
  // The stream stays open and brings no overview, and the request for one hangs.
  await page.route('**/v1/overview', () => {});
  stage.standIn.installation = false;
  await page.getByRole('alert').getByText('The server has fallen silent').waitFor({ timeout: 30_000 });
  await page.getByText('no news').waitFor();
  stage.standIn.installation = true;
  await page.getByRole('status').getByText('live').waitFor();
  assert.equal(await page.getByRole('alert').count(), 0);
});

test('a file that is deleted does not stay beside the list', stage.needs, async () => {
  const page = await stage.open('/files?drive=main&file=n1');
  const beside = page.getByRole('region', { name: 'annual.pdf' });
  await beside.getByRole('link', { name: 'Download' }).waitFor();
  await page.getByRole('button', { name: 'Delete annual.pdf' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await beside.waitFor({ state: 'detached' });
  assert.equal(new URL(page.url()).searchParams.has('file'), false);
});

test('what failed is forgotten once the same button did it', stage.needs, async () => {
  let isDown = true;
  stage.standIn.otherwise = (method, { pathname }) =>
    isDown && method === 'POST' && pathname.endsWith('/pause')
      ? [503, { error: { code: 'REDIS_UNAVAILABLE', message: 'not now' } }]
      : undefined;
  const page = await stage.open('/queues/document');
  const pause = page.getByRole('button', { name: 'Pause' });
  await pause.click();
  await page.locator('.toast.bad').getByText('not now').waitFor();
  isDown = false;
  await pause.click();
  await page.locator('.toast.ok').waitFor();
  assert.equal(await page.locator('.toast.bad').count(), 0);
});

test('a slip in a limit does not take the limit away', stage.needs, async () => {
  const page = await stage.open('/queues/document');
  const limits = page.getByRole('region', { name: 'Limits' });
  const field = limits.getByLabel('Jobs at once');
  await field.fill('');
  await field.pressSequentially('e');
  await limits.getByText('Jobs at once: a whole number').waitFor();
  assert.equal(await limits.getByRole('button', { name: 'Set' }).isDisabled(), true);
  await field.fill('7');
  await limits.getByRole('button', { name: 'Set' }).click();
  await page.getByText('The limits of document are set.').waitFor();
});

test('fields beside each other stand on one line, with or without a hint', stage.needs, async () => {
  const page = await stage.open('/schedules');
  await page.getByRole('button', { name: 'New schedule' }).click();
  const dialog = page.getByRole('dialog');
  const [when, cron] = [dialog.getByLabel('When'), dialog.getByLabel('Cron')];
  assert.equal((await when.boundingBox())!.y, (await cron.boundingBox())!.y);
});

test('who changed something without a key is called that', stage.needs, async () => {
  const row = { id: 'a1', at: new Date().toISOString(), action: 'worker.drain', outcome: 'done' };
  stage.standIn.otherwise = (_method, { pathname }) =>
    pathname === '/v1/audit'
      ? [200, { items: [{ ...row, actor: 'open', actorName: '', tenant: null }], next: null }]
      : undefined;
  const page = await stage.open('/audit');
  await page.getByRole('cell', { name: 'no key' }).waitFor();
});

test('Enter in a field does what the dialog is for, unless nothing could undo it', stage.needs, async () => {
  const page = await stage.open('/settings');
  await page.getByRole('button', { name: 'New key' }).click();
  const name = page.getByRole('dialog').getByLabel('Name');
  // Not ready yet: nothing happens.
  await name.press('Enter');
  await name.fill('ops');
  await name.press('Enter');
  await page.getByText('slk_0123_secret').waitFor();
  await page.goto(`${stage.standIn.url}/dead?queue=document`);
  await page.getByRole('button', { name: 'Discard all matching' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Discard 12 letters' }).waitFor();
  await page.getByLabel('At most per second').press('Enter');
  await page.waitForTimeout(300);
  const started = stage.standIn.requests.filter(
    ({ line, body }) => line.endsWith('/dead/discard') && !body.includes('dryRun'),
  );
  assert.equal(started.length, 0);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Replay all matching' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Replay 12 letters' }).waitFor();
  await page.getByLabel('At most per second').press('Enter');
  await page.getByText('Started; the progress is on this page.').waitFor();
});

async function choose(page: Page): Promise<void> {
  const file = { name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('abc') };
  await page.getByLabel('Files to send').setInputFiles(file);
}

test('Escape does not throw away what somebody wrote; Close does', stage.needs, async () => {
  const page = await stage.open('/jobs/document/17');
  await page.getByRole('button', { name: 'Edit and replay' }).click();
  const data = page.getByRole('dialog').getByLabel('Data');
  await data.fill('{ "half": "written" }');
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').getByText('is not sent yet').waitFor();
  assert.equal(await data.inputValue(), '{ "half": "written" }');
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).first().click();
  await data.waitFor({ state: 'detached' });
});

test('a schedule of the same name is replaced only by who knows that', stage.needs, async () => {
  const page = await stage.open('/schedules?queue=mail');
  await page.getByRole('button', { name: 'New schedule' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill('nightly');
  await dialog.getByText('this takes its place').waitFor();
  await dialog.getByRole('button', { name: 'Replace' }).waitFor();
  await dialog.getByLabel('Name').fill('nightly-2');
  await dialog.getByRole('button', { name: 'Set' }).waitFor();
});

test('waiting jobs that stand in no list of a priority are counted as well', stage.needs, async () => {
  const page = await stage.open('/queues/document');
  await page.getByText('0 · 0 · 0 · 0 · 0 · 0, and 213 in groups, due or just come').waitFor();
});
