/** Settings, cache, schedules and workers, in a real browser against a stand-in that remembers what it was asked. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { chromiumProblem, startBrowser, type Browser } from '@sluice/testbed';
import type { Locator, Page } from 'playwright-core';
import { hostile } from './scenes.js';
import { startStandIn, type StandIn } from './standIn.js';

const noBrowser = chromiumProblem() ?? false;
const hook = 'https://example.com/hooks';
let browser: Browser;
let standIn: StandIn;
let page: Page;

before(async () => {
  if (noBrowser) return;
  standIn = await startStandIn('busy');
  browser = await startBrowser();
  page = await browser.newPage({ viewport: { width: 1_440, height: 900 }, reducedMotion: 'reduce' });
});

beforeEach(() => {
  if (noBrowser) return;
  standIn.requests.length = 0;
  standIn.otherwise = undefined;
});

after(async () => {
  await browser?.close();
  await standIn?.close();
});

test('a webhook is made, and its secret is shown once', { skip: noBrowser }, async () => {
  await page.goto(`${standIn.url}/settings`);
  await button('New webhook').click();
  assert.equal(await button('Make it').isDisabled(), true);
  await dialog().getByLabel('Address').fill('https://example.com/new');
  await dialog().getByLabel('Topics').fill('jobs.dead, repository.*');
  await dialog().getByLabel('Of', { exact: false }).selectOption('');
  await button('Make it').click();
  await page.getByRole('dialog', { name: 'The secret that signs' }).getByText('whsec_0123').waitFor();
  const topics = ['jobs.dead', 'repository.*'];
  assert.deepEqual(asked('POST /v1/webhooks'), [{ url: 'https://example.com/new', topics }]);
  await button('Close').click();
  await page.getByText('whsec_0123').waitFor({ state: 'detached' });
});

test('a webhook of the whole installation is made for alerts, and tried', { skip: noBrowser }, async () => {
  await page.goto(`${standIn.url}/settings`);
  await button('New webhook').click();
  await dialog().getByLabel('Topics').fill('sluice.alerts.*');
  await button('Make it').click();
  await page.getByText('whsec_0123').waitFor();
  const body = { url: 'https://', topics: ['sluice.alerts.*'] };
  assert.deepEqual(asked('POST /v1/webhooks?tenant=*'), [body]);
  await button('Close').click();
  await page.getByRole('row', { name: /pager/ }).getByText('the whole installation').waitFor();
  await button('Test https://example.com/pager').click();
  await page.getByText('On its way; see the deliveries.').waitFor();
  assert.equal(asked('POST /v1/webhooks/w5/test?tenant=*').length, 1);
});

test('a webhook is tried, and how its deliveries went is shown', { skip: noBrowser }, async () => {
  await page.goto(`${standIn.url}/settings`);
  await button(`Test ${hook}`).click();
  await page.getByText('On its way; see the deliveries.').waitFor();
  assert.equal(asked('POST /v1/webhooks/w0/test').length, 1);
  await button(`Deliveries to ${hook}`).click();
  await dialog().getByText('delivered', { exact: true }).waitFor();
  await dialog().getByText(hostile).first().waitFor();
  await button('Close').first().click();
});

test('the secret of a webhook is rotated, after a question', { skip: noBrowser }, async () => {
  await page.goto(`${standIn.url}/settings`);
  await button(`Rotate the secret of ${hook}`).click();
  assert.equal(asked('POST /v1/webhooks/w0/rotate').length, 0);
  await dialog().getByRole('button', { name: 'Rotate' }).click();
  await page.getByText('whsec_0123').waitFor();
  assert.equal(asked('POST /v1/webhooks/w0/rotate').length, 1);
});

test(
  'a webhook is switched off, another one on, and one is deleted after a question',
  { skip: noBrowser },
  async () => {
    await page.goto(`${standIn.url}/settings`);
    await button(`Off: ${hook}`).click();
    await page.getByText('It is told nothing any more.').waitFor();
    assert.deepEqual(asked('PATCH /v1/webhooks/w0'), [{ active: false }]);
    await button(`On: ${hook.replace('/hooks', '/?')}${hostile}`).click();
    await page.getByText('It is told again.').waitFor();
    assert.deepEqual(asked('PATCH /v1/webhooks/w1'), [{ active: true }]);
    await button(`Delete ${hook}`).click();
    await dialog().getByRole('button', { name: 'Delete' }).click();
    await page.getByText('It is deleted.').waitFor();
    assert.equal(asked('DELETE /v1/webhooks/w0').length, 1);
  },
);

test('a key is rotated and revoked, each after a question', { skip: noBrowser }, async () => {
  await page.goto(`${standIn.url}/settings`);
  await button('Rotate Ada').click();
  await dialog().getByRole('button', { name: 'Rotate' }).click();
  await page.getByText('slk_0123_secret').waitFor();
  await button('Close').first().click();
  await button('Revoke Ada').click();
  await dialog().getByRole('button', { name: 'Revoke' }).click();
  await page.getByText('Ada is revoked.').waitFor();
  assert.equal(asked('DELETE /v1/keys/0123456789abcde0').length, 1);
});

test('a cached value is looked up, explained and invalidated', { skip: noBrowser }, async () => {
  await page.goto(`${standIn.url}/cache`);
  await page.getByLabel('Family').selectOption('user');
  assert.equal(await button('Look up').isDisabled(), true);
  await page.getByLabel('Key', { exact: true }).fill('{"id":17}');
  await button('Look up').click();
  await page.getByText('Value', { exact: true }).waitFor();
  await button('Explain').click();
  await page.getByText('Why it is as it is').waitFor();
  const key = encodeURIComponent('{"id":17}');
  const lines = standIn.requests.map(({ line }) => line);
  assert.ok(lines.includes(`GET /v1/cache/user/entry?key=${key}`), lines.join('\n'));
  assert.ok(lines.includes(`GET /v1/cache/user/explain?key=${key}`));
  await button('Invalidate').click();
  await page.getByText('Readers load it anew from now on.').waitFor();
  assert.deepEqual(asked('POST /v1/cache/user/invalidate'), [{ key: { id: 17 } }]);
});

test('a whole group of cached values is invalidated only after a question', { skip: noBrowser }, async () => {
  await page.goto(`${standIn.url}/cache?family=user`);
  await page.getByLabel('Group').fill(hostile);
  await button('Invalidate group').click();
  assert.deepEqual(asked('POST /v1/cache/user/invalidate'), []);
  await dialog().getByRole('button', { name: 'Invalidate' }).click();
  await page.getByText(`What belongs to ${hostile} is loaded anew.`).waitFor();
  assert.deepEqual(asked('POST /v1/cache/user/invalidate'), [{ group: hostile }]);
});

test(
  'a group with parts is written as a list, and one that Redis did not hear of is kept',
  { skip: noBrowser },
  async () => {
    standIn.otherwise = (method, { pathname }) =>
      method === 'POST' && pathname === '/v1/cache/user/invalidate'
        ? [200, { invalidated: 'kept' }]
        : undefined;
    await page.goto(`${standIn.url}/cache?family=user`);
    await page.getByLabel('Group').fill('["graph","17"]');
    await button('Invalidate group').click();
    await dialog().getByRole('button', { name: 'Invalidate' }).click();
    await page.getByText('invalidates as soon as it does').waitFor();
    assert.deepEqual(asked('POST /v1/cache/user/invalidate'), [{ group: ['graph', '17'] }]);
  },
);

test(
  'a schedule is set with a time zone and data, and ended after a question',
  { skip: noBrowser },
  async () => {
    await page.goto(`${standIn.url}/schedules?queue=mail`);
    await button('New schedule').click();
    await dialog().getByLabel('Name').fill('weekly');
    await dialog().getByLabel('Cron').fill('0 7 * * 1');
    await dialog().getByLabel('Time zone').fill('Europe/Berlin');
    await dialog().getByLabel('Data of its jobs').fill('{ "half": ');
    await dialog().getByText('This is no JSON').waitFor();
    assert.equal(await button('Set').isDisabled(), true);
    await dialog().getByLabel('Data of its jobs').fill('{ "week": true }');
    await button('Set').click();
    await page.getByText('weekly is set.').waitFor();
    const when = { cron: '0 7 * * 1', timeZone: 'Europe/Berlin' };
    assert.deepEqual(asked('PUT /v1/queues/mail/schedules/weekly'), [{ when, data: { week: true } }]);
    await button('End nightly').click();
    await dialog().getByRole('button', { name: 'End it' }).click();
    await page.getByText('nightly has ended.').waitFor();
    assert.equal(asked('DELETE /v1/queues/mail/schedules/nightly').length, 1);
  },
);

test('nothing is offered that would write into a queue of Sluice itself', { skip: noBrowser }, async () => {
  await page.goto(`${standIn.url}/schedules`);
  await button('New schedule').click();
  const offered = await dialog().getByLabel('Queue').locator('option').allTextContents();
  assert.deepEqual([offered.includes('mail'), offered.includes('webhooks')], [true, false]);
  const buttons = async (queue: string) => {
    await page.goto(`${standIn.url}/jobs/${queue}/17`);
    await button('Retry').waitFor();
    return button('Edit and replay').count();
  };
  assert.deepEqual([await buttons('document'), await buttons('webhooks')], [1, 0]);
});

test('a schedule is set for every so often', { skip: noBrowser }, async () => {
  await page.goto(`${standIn.url}/schedules?queue=mail`);
  await button('New schedule').click();
  await dialog().getByLabel('Name').fill('sweep');
  await dialog().getByLabel('When').selectOption('every so often');
  for (const unclear of ['', 'often', '0', '-5', '1e999']) {
    await dialog().getByRole('textbox', { name: 'Every' }).fill(unclear);
    await dialog().getByText('Say how often').waitFor();
    assert.equal(await button('Set').isDisabled(), true, unclear);
  }
  await dialog().getByRole('textbox', { name: 'Every' }).fill('1.5');
  await dialog().getByLabel('Unit').selectOption('hours');
  await button('Set').click();
  await page.getByText('sweep is set.').waitFor();
  assert.deepEqual(asked('PUT /v1/queues/mail/schedules/sweep'), [
    { when: { everyMs: 5_400_000 }, data: {} },
  ]);
});

test(
  'a worker is drained, and one that drains works again; the silent one stands first',
  { skip: noBrowser },
  async () => {
    await page.goto(`${standIn.url}/workers`);
    await page.getByRole('row').nth(1).getByText('silent for').waitFor();
    await button('Drain worker-0').click();
    await page.getByText('It finishes what it has and takes nothing more.').waitFor();
    assert.deepEqual(asked('POST /v1/queues/document/workers/s0/drain'), [{ drain: true }]);
    await button('Work again: worker-3').click();
    await page.getByText('It takes jobs again.').waitFor();
    assert.deepEqual(asked('POST /v1/queues/graph/workers/s3/drain'), [{ drain: false }]);
    await button(`Drain ${hostile}`).waitFor();
    assert.equal(await page.evaluate('window.hacked'), undefined);
  },
);

test('an upload is cancelled, and so is a job, each after a question', { skip: noBrowser }, async () => {
  await page.goto(`${standIn.url}/uploads`);
  await button('Cancel films/interview.mp4').click();
  await dialog().getByRole('button', { name: 'Cancel it' }).click();
  await page.getByText('films/interview.mp4 is cancelled.').waitFor();
  assert.equal(asked('DELETE /v1/uploads/u1').length, 1);
  await page.goto(`${standIn.url}/jobs?queue=document`);
  await button(`Cancel ${hostile}`).click();
  await dialog().getByRole('button', { name: 'Cancel it' }).click();
  await page.getByText('is cancelled; it was dead.').waitFor();
  const path = `/v1/queues/document/jobs/${encodeURIComponent(hostile)}/cancel`;
  assert.equal(asked(`POST ${path}`).length, 1);
});

test('a running operation is stopped', { skip: noBrowser }, async () => {
  await page.goto(`${standIn.url}/dead`);
  await button('Stop operation o1').click();
  await page.getByText('It stops; what was done stays done.').waitFor();
  assert.equal(asked('POST /v1/operations/o1/cancel').length, 1);
});

test('the limits of a queue are set', { skip: noBrowser }, async () => {
  await page.goto(`${standIn.url}/queues/document`);
  await page.getByLabel('Starts').fill('5');
  await button('Set').click();
  await page.getByText('The limits of document are set.').waitFor();
  const rules = { maxActive: 100, rate: { max: 5, perMs: 1_000 }, perGroup: { maxActive: null } };
  assert.deepEqual(asked('PATCH /v1/queues/document/limits'), [rules]);
});

function button(name: string): Locator {
  return page.getByRole('button', { name, exact: true });
}

function dialog(): Locator {
  return page.getByRole('dialog');
}

/** The bodies of what was asked for, with nothing for an empty one. */
function asked(line: string): unknown[] {
  return standIn.requests
    .filter((request) => request.line === line)
    .map(({ body }) => (body === '' ? null : (JSON.parse(body) as unknown)));
}
