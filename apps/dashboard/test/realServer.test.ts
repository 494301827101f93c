/** The page on a real server, with real queues, files and keys: from an empty installation to signed-in roles, through a restart. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import {
  chromiumProblem,
  freePort,
  makeOwnedFolder,
  startBrowser,
  startRedis,
  startSluice,
  waitUntil,
  type Browser,
  type RedisServer,
  type SluiceServer,
} from '@sluice/testbed';
import type { BrowserContext, Page, Request } from 'playwright-core';

const noBrowser = chromiumProblem() ?? false;
const patienceMs = 60_000;
const hostile = '<img src=x onerror="window.hacked=1">';
/** A picture of one pixel. */
const dot = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const handlers = `
export const handlers = {
  broken: async ({ data }) => {
    if (data.mended) return { fine: true };
    throw new Error('it broke: ${hostile}');
  },
};
`;

let browser: Browser;
let folder: string;
let port: number;
let redis: RedisServer;
let server: SluiceServer;
/** From the moment that there is one. */
let adminKey: string;

before(async () => {
  if (noBrowser) return;
  folder = makeOwnedFolder('dashboard');
  writeFileSync(join(folder, 'handlers.mjs'), handlers);
  port = await freePort();
  // One after the other: what was started is known when the next one fails.
  redis = await startRedis({ config: { 'maxmemory-policy': 'noeviction' } });
  server = await startServer();
  browser = await startBrowser();
});

after(async () => {
  await browser?.close();
  await server?.stop();
  await redis?.stop();
});

test('a job that died is found, edited and replayed on the page', { skip: noBrowser }, async () => {
  await addJob({ customer: hostile }, 1);
  await waitForDead(1);
  const page = await open('/');
  await page.getByText(': 1 dead letter').waitFor();
  await page.getByRole('link', { name: 'See the letters' }).click();
  await page
    .getByRole('cell', { name: /it broke/ })
    .first()
    .waitFor();
  await page.locator('td a.mono').first().click();
  await page.getByRole('button', { name: 'Edit and replay' }).click();
  await page.getByRole('dialog').getByLabel('Data').fill('{ "mended": true }');
  await page.getByRole('region', { name: 'What changes' }).waitFor();
  await page.getByRole('button', { name: 'Replay with these data' }).click();
  await page.getByText(/runs again/).waitFor();
  await waitForDead(0);
  // It worked, and nothing is kept of it: that is no failure.
  await page.getByText('This job has ended').waitFor();
  assert.equal(await page.locator('.notice.bad, .notice.warn').count(), 0);
  assert.equal(await page.evaluate('window.hacked'), undefined);
  await page.context().close();
});

test(
  'of a job that is done, the page shows the result and makes up no payload',
  { skip: noBrowser },
  async () => {
    const job = { id: 'kept', data: { mended: true }, keepResultMs: 600_000 };
    await ask('POST', '/v1/queues/broken/jobs', job);
    const page = await open('/jobs/broken/kept');
    await page.getByRole('region', { name: 'Result' }).getByText('fine').waitFor();
    await page.getByRole('region', { name: 'Payload' }).getByText('was not kept').waitFor();
    assert.equal(await page.getByRole('button', { name: 'Edit and replay' }).count(), 0);
    await page.context().close();
  },
);

test(
  'dead letters are discarded as an operation that the page follows to its end',
  { skip: noBrowser },
  async () => {
    for (let i = 0; i < 5; i++) await addJob({ i }, 1);
    await waitForDead(5);
    const page = await open('/dead?queue=broken');
    await page.getByRole('button', { name: 'Discard all matching' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Discard 5 letters' }).click();
    await page.getByText('5 of 5').waitFor();
    await page.getByText('Nothing has died').waitFor();
    await page.context().close();
  },
);

test('a queue is paused and resumed, and the audit log says who did it', { skip: noBrowser }, async () => {
  const page = await open('/queues/broken');
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.getByText('broken starts jobs again.').waitFor();
  await page.goto(`${server.url}/audit`);
  await page.getByRole('link', { name: 'queue.resume' }).first().waitFor();
  await page.context().close();
});

test(
  'a file is sent from the page, shown as text, and followed through the flow',
  { skip: noBrowser },
  async () => {
    const page = await open('/uploads');
    await page.getByRole('button', { name: 'Choose files' }).waitFor();
    const content = `${hostile}\nsecond line`;
    await page
      .getByLabel('Files to send')
      .setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from(content) });
    await page.getByText('done', { exact: true }).waitFor();
    await page.goto(`${server.url}/files`);
    await page.getByRole('link', { name: 'notes.txt' }).click();
    await page.getByText('second line').waitFor();
    await page.getByRole('link', { name: 'Follow this file' }).click();
    await page.getByText('completed', { exact: true }).waitFor();
    assert.equal(await page.evaluate('window.hacked'), undefined);
    await page.context().close();
  },
);

test('a picture is shown, and one that is none is not', { skip: noBrowser }, async () => {
  const page = await open('/uploads');
  await page.getByRole('button', { name: 'Choose files' }).waitFor();
  const file = (name: string, buffer: Buffer) => ({ name, mimeType: 'image/png', buffer });
  const files = [file('dot.png', dot), file('torn.png', dot.subarray(0, 20))];
  await page.getByLabel('Files to send').setInputFiles(files);
  await page.getByText('done', { exact: true }).nth(1).waitFor();
  await page.goto(`${server.url}/files`);
  await page.getByRole('link', { name: 'dot.png' }).click();
  await pictureShown(page, 'dot.png');
  await page.getByRole('link', { name: 'torn.png' }).click();
  await page.getByText('It cannot be shown here.').waitFor();
  await page.context().close();
});

test('a server that restarts is found again by a page that stayed open', { skip: noBrowser }, async () => {
  const page = await open('/');
  await page.getByText('live', { exact: true }).waitFor();
  const began = performance.now();
  await server.stop();
  // An open page must not keep a server from stopping in good order.
  assert.ok(performance.now() - began < 20_000);
  await page.getByText('no connection').waitFor();
  server = await startServer();
  await page.getByText('live', { exact: true }).waitFor();
  await page.context().close();
});

test(
  'a Redis that restarts alone is named on the page, which recovers by itself',
  { skip: noBrowser },
  async () => {
    const page = await open('/');
    await page.getByText('live', { exact: true }).waitFor();
    await redis.kill9();
    await page.getByRole('alert').filter({ hasText: 'Redis does not answer' }).first().waitFor();
    // The server itself is there, and the page says no other.
    assert.equal(await page.getByText('no connection').count(), 0);
    await redis.restart();
    await page.getByRole('alert').first().waitFor({ state: 'detached' });
    await page.getByText('live', { exact: true }).waitFor();
    await page.context().close();
  },
);

test(
  'eight tabs of one browser are live at once, and share one connection',
  { skip: noBrowser },
  async () => {
    const context = await newContext();
    const streams = new Set<Request>();
    const isStream = (request: Request): boolean => request.url().includes('/v1/live');
    context.on('request', (request) => isStream(request) && streams.add(request));
    context.on('requestfinished', (request) => streams.delete(request));
    context.on('requestfailed', (request) => streams.delete(request));
    const tabs: Page[] = [];
    for (let i = 0; i < 8; i++) {
      const tab = await context.newPage();
      await tab.goto(`${server.url}/queues/broken`);
      tabs.push(tab);
    }
    for (const tab of tabs) await tab.getByText('live', { exact: true }).waitFor();
    assert.equal(streams.size, 1);
    // Another program pauses the queue; every tab hears of it.
    await ask('POST', '/v1/queues/broken/pause');
    for (const tab of tabs) await tab.getByRole('button', { name: 'Resume' }).waitFor();
    await ask('POST', '/v1/queues/broken/resume');
    for (const tab of tabs) await tab.getByRole('button', { name: 'Pause' }).waitFor();
    await context.close();
  },
);

test(
  'a file that is dropped on the page is sent, and found among the files',
  { skip: noBrowser },
  async () => {
    const page = await open('/uploads');
    await page.getByText('Drop files here').waitFor();
    const dropped = await page.evaluateHandle(() => {
      const transfer = new DataTransfer();
      transfer.items.add(new File(['dropped from a desk'], 'dropped.txt', { type: 'text/plain' }));
      return transfer;
    });
    await page.locator('.drop').dispatchEvent('drop', { dataTransfer: dropped });
    await page.getByText('main/dropped.txt').waitFor();
    await page.getByText('done', { exact: true }).waitFor();
    await page.goto(`${server.url}/files`);
    await page.getByRole('link', { name: 'dropped.txt' }).click();
    await page.getByText('dropped from a desk').waitFor();
    await page.context().close();
  },
);

test('a file on its way is paused, goes on, and another one is cancelled', { skip: noBrowser }, async () => {
  const page = await open('/uploads');
  await page.getByText('Drop files here').waitFor();
  let release = (): void => {};
  const gate = new Promise<void>((resolve) => (release = resolve));
  // What carries bytes waits at the gate; a request that was given up meanwhile cannot go on.
  await page.route(/\/v1\/(uploads|files)/, async (route) => {
    if (route.request().method() !== 'GET') await gate;
    await route.continue().catch(() => {});
  });
  const choose = (name: string): Promise<void> =>
    page
      .getByLabel('Files to send')
      .setInputFiles({ name, mimeType: 'text/plain', buffer: Buffer.alloc(3_000_000, 'x') });
  const sending = (name: string) => page.getByRole('listitem').filter({ hasText: `main/${name}` });
  await choose('slow.txt');
  await sending('slow.txt').getByRole('button', { name: 'Pause' }).click();
  await sending('slow.txt').getByText('paused', { exact: true }).waitFor();
  await choose('unwanted.txt');
  await sending('unwanted.txt').getByRole('button', { name: 'Cancel' }).click();
  release();
  await sending('unwanted.txt').getByText('cancelled', { exact: true }).waitFor();
  await sending('slow.txt').getByRole('button', { name: 'Resume' }).click();
  await sending('slow.txt').getByText('done', { exact: true }).waitFor();
  await sending('slow.txt').getByRole('button', { name: 'Close' }).click();
  await sending('slow.txt').waitFor({ state: 'detached' });
  await page.context().close();
});

test(
  'the first key closes the door; keys open it as far as their role goes',
  { skip: noBrowser },
  async () => {
    const page = await open('/settings');
    adminKey = await makeKey(page, 'Ada', 'admin');
    // Whoever made it stays inside; everybody else stands before the door.
    await page.getByText('Ada · admin').waitFor();
    const other = await open('/queues');
    await signIn(other, adminKey);
    await other.getByRole('heading', { name: 'Queues', level: 1 }).waitFor();
    await other.context().close();
    const viewer = await makeKey(page, 'Vera', 'viewer');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await signIn(page, viewer);
    await page.getByText('Vera · viewer').waitFor();
    await page.goto(`${server.url}/queues`);
    const pause = page.getByRole('button', { name: 'Pause broken' });
    await pause.waitFor();
    assert.equal(await pause.isDisabled(), true);
    await page.context().close();
  },
);

test(
  'files of another tenant are shown and downloaded by a key of the installation',
  { skip: noBrowser },
  async () => {
    const send = (
      method: string,
      path: string,
      key: string,
      body: string | Blob,
      type = 'application/json',
    ): Promise<Response> =>
      fetch(server.url + path, {
        method,
        headers: { Authorization: `Bearer ${key}`, 'Content-Type': type },
        body,
      });
    const draft = JSON.stringify({ name: 'acme', role: 'operator', tenant: 'acme' });
    const made = (await (await send('POST', '/v1/keys', adminKey, draft)).json()) as { key: string };
    const sent = await send('PUT', '/v1/files/main/acme.json', made.key, '"of acme"');
    assert.ok(sent.ok, await sent.text());
    const picture = await send('PUT', '/v1/files/main/acme.png', made.key, new Blob([dot]), 'image/png');
    assert.ok(picture.ok, await picture.text());
    const page = await open('/files');
    await signIn(page, adminKey);
    await page.getByLabel('Tenant', { exact: true }).fill('acme');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'acme.json' }).click();
    await page.getByText('"of acme"').waitFor();
    const download = page.waitForEvent('download');
    const row = page.getByRole('row', { name: /acme\.json/ });
    await row.getByRole('button', { name: 'Download acme.json' }).click();
    const file = await (await download).path();
    assert.equal(readFileSync(file, 'utf8'), '"of acme"');
    await page.getByRole('link', { name: 'acme.png' }).click();
    await pictureShown(page, 'acme.png');
    await page.context().close();
  },
);

async function pictureShown(page: Page, name: string): Promise<void> {
  const picture = page.getByRole('img', { name });
  await waitUntil(`${name} is drawn`, () =>
    picture.evaluate((image) => 'naturalWidth' in image && image.naturalWidth === 1),
  );
}

async function makeKey(page: Page, name: string, role: string): Promise<string> {
  await page.getByRole('button', { name: 'New key' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill(name);
  await dialog.getByLabel('Role').selectOption(role);
  await dialog.getByRole('button', { name: 'Make it' }).click();
  const text = await page.locator('.secret').textContent();
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
  return text!;
}

async function signIn(page: Page, key: string): Promise<void> {
  await page.locator('input[name=key]').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

async function newContext(): Promise<BrowserContext> {
  const context = await browser.newContext({
    viewport: { width: 1_440, height: 900 },
    reducedMotion: 'reduce',
  });
  context.setDefaultTimeout(patienceMs);
  return context;
}

async function open(path: string): Promise<Page> {
  const page = await (await newContext()).newPage();
  await page.goto(server.url + path);
  return page;
}

async function addJob(data: object, attempts: number): Promise<void> {
  await ask('POST', '/v1/queues/broken/jobs', { data, attempts });
}

async function ask(method: string, path: string, body?: object): Promise<void> {
  const response = await fetch(server.url + path, {
    method,
    ...(body && { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }),
  });
  assert.ok(response.ok, await response.text());
}

async function waitForDead(count: number): Promise<void> {
  const dead = async (): Promise<boolean> => {
    const response = await fetch(`${server.url}/v1/queues/broken/dead`);
    return ((await response.json()) as { items: unknown[] }).items.length === count;
  };
  await waitUntil(`${count} dead letters`, dead, { timeoutMs: patienceMs });
}

/** On the same port each time, as a restarted server is, and with a Redis that the test can stop. */
function startServer(): Promise<SluiceServer> {
  return startSluice({
    ...{ SLUICE_DATA_DIR: folder, SLUICE_PORT: String(port), SLUICE_QUEUES: 'broken' },
    ...{ SLUICE_HANDLERS: join(folder, 'handlers.mjs'), SLUICE_REDIS_URL: redis.url },
  });
}
