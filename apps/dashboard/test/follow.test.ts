/** What is searched for and followed, in a real browser: the search on top, one id through the flow, files and events, each as it changes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@sluice/testbed';
import type { Page } from 'playwright-core';
import { overviewOf } from './scenes.js';
import { useStage } from './stage.js';

const stage = useStage();

test('the search proposes what is called so first, and to follow an id last', stage.needs, async () => {
  const overview = overviewOf('busy', Date.now());
  const numbered = Array.from({ length: 30 }, (_, i) => `mail-${String(i + 1).padStart(2, '0')}`);
  const queues = ['chain-mail', ...numbered, 'letters-1', 'mail', 'redis-1', 'redis'];
  overview.queues = queues.map((name) => ({ ...overview.queues[0]!, name }));
  stage.standIn.otherwise = (_method, { pathname }) =>
    pathname === '/v1/overview' ? [200, overview] : undefined;
  const page = await stage.open('/queues');
  await page.getByRole('link', { name: 'mail-30' }).waitFor();
  assert.deepEqual(await proposed(page, 'Mail'), [
    ...['mail', ...numbered.slice(0, 8)],
    'Follow the id “Mail”',
  ]);
  assert.deepEqual(await proposed(page, 'mail-3'), ['mail-30', 'Follow the id “mail-3”']);
  assert.deepEqual(await proposed(page, 'n-mail'), ['chain-mail', 'Follow the id “n-mail”']);
  // A page stands before queues that match as well.
  assert.deepEqual(await proposed(page, 'redis'), ['Redis', 'redis', 'redis-1', 'Follow the id “redis”']);
  assert.deepEqual(await proposed(page, 'letters'), [
    ...['Dead letters', 'letters-1'],
    'Follow the id “letters”',
  ]);
  await page.getByRole('combobox', { name: 'Find' }).fill('mail');
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/queues\/mail$/);
});

test('an upload that is followed is seen to arrive, and its jobs to advance', stage.needs, async () => {
  let trace = traceOf(25, null);
  stage.standIn.otherwise = (_method, { pathname }) =>
    pathname === '/v1/trace/u1' ? [200, trace] : undefined;
  const page = await stage.open('/trace?id=u1');
  const upload = page.getByRole('region', { name: '1 · Upload' });
  await upload.getByText('uploading', { exact: true }).waitFor();
  await upload.getByText('256 B of 1.0 KiB, 25 %').waitFor();
  assert.equal(await upload.getByRole('progressbar').getAttribute('aria-valuenow'), '25');
  const job = page.getByRole('progressbar', { name: 'Progress of j1' });
  assert.equal(await job.getAttribute('aria-valuenow'), '25');
  trace = traceOf(75, null);
  await upload.getByText('75 %').waitFor();
  assert.equal(await job.getAttribute('aria-valuenow'), '75');
  trace = traceOf(100, new Date().toISOString());
  await upload.getByText('completed', { exact: true }).waitFor();
  assert.equal(await upload.getByRole('progressbar').count(), 0);
});

test('to follow the same id again looks again', stage.needs, async () => {
  const page = await stage.open('/trace?id=17');
  await page.getByRole('heading', { name: '1 · Upload' }).waitFor();
  stage.standIn.twist = (value, address) =>
    address?.pathname === '/v1/trace/17' ? { ...(value as object), waitingEvents: 3 } : value;
  await page.getByRole('button', { name: 'Follow', exact: true }).click();
  // By itself the page looks every half a minute where nothing is under way.
  await page.getByText('3 wait to be published.').waitFor({ timeout: 15_000 });
});

test(
  'a file that arrives appears in the folder that is open, and other bytes are shown',
  stage.needs,
  async () => {
    const at = new Date().toISOString();
    const node = (name: string, sha256: string) => ({
      ...{ id: name, driveId: 'd1', parentId: null, name, path: name, type: 'FILE', status: 'ACTIVE' },
      ...{ contentType: 'text/plain', size: 5, sha256, createdAt: at, updatedAt: at },
    });
    let nodes = [node('old.txt', 'aa')];
    stage.standIn.otherwise = (_method, { pathname }) => {
      if (pathname === '/v1/nodes') return [200, { nodes, next: null }];
      if (pathname === '/v1/nodes/old.txt') return [200, nodes[0]];
      if (pathname === '/v1/nodes/old.txt/content') return [200, `bytes ${nodes[0]!.sha256}`];
      return undefined;
    };
    const page = await stage.open('/files?drive=main&file=old.txt');
    await page.getByText('bytes aa').waitFor();
    nodes = [node('old.txt', 'bb'), node('new.txt', 'cc')];
    await page.getByRole('link', { name: 'new.txt' }).waitFor();
    await page.getByText('bytes bb').waitFor();
  },
);

test('events that wait too long to be published are called late', stage.needs, async () => {
  const page = await stage.open('/events');
  const outbox = page.getByRole('group', { name: 'Outbox' });
  await outbox.getByText('on time').waitFor();
  await outbox.getByText('–', { exact: true }).waitFor();
  stage.standIn.scene = 'broken';
  await outbox.getByText('1,204').waitFor();
  await outbox.locator('.text-warn').getByText('3 min').waitFor();
  await outbox.getByText('the relay is late').waitFor();
});

function traceOf(percent: number, endedAt: string | null): object {
  const createdAt = new Date().toISOString();
  const bounds = { scanned: 1, complete: true };
  const known = { id: 'u1', nodeId: 'n1', path: 'a.txt', createdAt };
  return {
    ...{ id: 'u1', kind: 'upload', node: null, events: [], waitingEvents: 0 },
    upload: {
      live: { ...known, drive: 'main', state: 'UPLOADING', size: 1_024, receivedBytes: percent * 10.24 },
      record: { ...known, status: endedAt ? 'COMPLETED' : 'PENDING', reason: null, endedAt },
    },
    jobs: [{ queue: 'document', id: 'j1', state: 'active', progress: percent }],
    bounds: { events: bounds, jobs: bounds },
  };
}

async function proposed(page: Page, text: string): Promise<string[]> {
  await page.getByRole('combobox', { name: 'Find' }).fill(text);
  const follow = `Follow the id “${text}”`;
  await waitUntil(follow, async () => (await titles(page)).includes(follow));
  return titles(page);
}

function titles(page: Page): Promise<string[]> {
  return page.getByRole('option').locator('span').allTextContents();
}
