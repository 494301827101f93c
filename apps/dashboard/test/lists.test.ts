/** Lists and their filters, in a real browser: what is written stays, what is listed stands in its order, and none ends silently. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@sluice/testbed';
import type { Page } from 'playwright-core';
import { newestFirst } from '../src/eventOrder.js';
import { useStage } from './stage.js';

const stage = useStage();
const began = Date.now();

test('what is half written in a filter outlives the news', stage.needs, async () => {
  const page = await stage.open('/events');
  await page.getByRole('cell', { name: 'repository.documents.created' }).first().waitFor();
  await page.getByLabel('Topic').pressSequentially('repository.doc');
  stage.standIn.tell('events', event(1), place(1));
  await page.getByText('live-1', { exact: true }).waitFor();
  assert.equal(await page.getByLabel('Topic').inputValue(), 'repository.doc');
  await page.keyboard.press('Enter');
  await page.waitForURL(/topic=repository\.doc$/);
  // A link that sets the filter replaces what is written.
  await page.getByRole('link', { name: 'repository.documents.created' }).first().click();
  await waitUntil('the filter of the link', async () => {
    return (await page.getByLabel('Topic').inputValue()) === 'repository.documents.created';
  });
});

test('filters of the audit log are asked for as they were written', stage.needs, async () => {
  const page = await stage.open('/audit');
  await page.getByLabel('Action').fill('queue.pause');
  await page.getByLabel('Key', { exact: true }).fill('k1');
  await page.keyboard.press('Enter');
  await page.waitForURL(/action=queue\.pause&actor=k1/);
  await asked('GET /v1/audit?action=queue.pause&actor=k1&limit=50');
});

test(
  'live events stand above the listed ones, the newest first, however many came',
  stage.needs,
  async () => {
    const page = await stage.open('/');
    await page.getByText('live', { exact: true }).waitFor();
    for (let i = 1; i <= 120; i++) stage.standIn.tell('events', event(i), place(i));
    // The list knows the newest fifty of them.
    const listed = Array.from({ length: 50 }, (_, i) => event(120 - i));
    answerWith('/v1/events', { items: listed, next: place(71), scanned: 50 });
    await page.getByRole('link', { name: 'Events', exact: true }).click();
    await page.getByText('live-120', { exact: true }).waitFor();
    await waitUntil('all live events', async () => (await firstCells(page)).length === 120);
    const shown = await firstCells(page);
    assert.deepEqual(
      shown,
      Array.from({ length: 120 }, (_, i) => `live-${120 - i}`),
    );
  },
);

test('a beginning of topics takes live events, too', stage.needs, async () => {
  const page = await stage.open('/events?topic=repository.');
  await page.getByRole('table').waitFor();
  stage.standIn.tell('events', event(1, 'repository.documents.deleted'), place(1));
  stage.standIn.tell('events', event(2, 'jobs.dead'), place(2));
  await page.getByText('live-1', { exact: true }).waitFor();
  assert.equal(await page.getByText('live-2', { exact: true }).count(), 0);
});

test('after a gap in the stream the list is asked for again', stage.needs, async () => {
  const page = await stage.open('/events');
  await page.getByRole('table').waitFor();
  const lists = (): number => stage.standIn.requests.filter(({ line }) => /v1\/events\?/.test(line)).length;
  const before = lists();
  stage.standIn.tell('events', event(1), place(1));
  await page.getByText('live-1', { exact: true }).waitFor();
  stage.standIn.tell('gap', { after: place(1), before: place(9_000) });
  await waitUntil('another list', () => Promise.resolve(lists() > before));
  await page.getByText('live-1', { exact: true }).waitFor({ state: 'detached' });
});

test('one list of events has each once, in the order of the stream', () => {
  const one = (cursor: string) => ({ cursor, eventId: cursor, topic: '', key: '', data: {} });
  const order = newestFirst([one('10-0'), one('9-2')], [one('9-10'), one('10-0'), one('100-0')]);
  assert.deepEqual(
    order.map(({ cursor }) => cursor),
    ['100-0', '10-0', '9-10', '9-2'],
  );
});

test('the list of jobs stays with the queue that it began with', stage.needs, async () => {
  const page = await stage.open('/jobs');
  await page.waitForURL(/\/jobs\?queue=mail$/);
  await page.getByRole('heading', { name: 'Jobs of mail' }).waitFor();
  // Now far more happens elsewhere.
  stage.standIn.scene = 'broken';
  await page.getByRole('link', { name: 'Dead letters 23.5 k' }).waitFor();
  await page.getByRole('heading', { name: 'Jobs of mail' }).waitFor();
  assert.equal(new URL(page.url()).search, '?queue=mail');
});

test('a key of a tenant is asked which queue, and not told that there is none', stage.needs, async () => {
  stage.standIn.installation = false;
  const page = await stage.open('/jobs');
  await page.getByText('Which queue?').waitFor();
  assert.equal(await page.getByText('npm run demo').count(), 0);
  await page.getByLabel('Queue').fill('document');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Jobs of document' }).waitFor();
});

test('letters that a paced replay took disappear from the list', stage.needs, async () => {
  const page = await stage.open('/dead?queue=document');
  await page.getByLabel('Choose 01JCX8DEAD0').waitFor();
  const operation = { id: 'o1', kind: 'dead.replay', queue: 'document', createdMs: began };
  let left = 12;
  stage.standIn.otherwise = (method, { pathname }) => {
    if (method === 'GET' && pathname === '/v1/operations') {
      const progress = { moved: 12 - left, total: 12 };
      return [200, { items: [{ ...operation, progress, state: left === 0 ? 'done' : 'running' }] }];
    }
    if (pathname === '/v1/queues/document/dead' && left === 0) return [200, { items: [], next: null }];
    return undefined;
  };
  await page.getByText('0 of 12').waitFor();
  left = 0;
  await page.getByText('No letter matches').waitFor({ timeout: 4_000 });
});

test('keys and schedules are shown to their last page', stage.needs, async () => {
  const key = (id: number) => ({
    ...{ id: `k${id}`, tenant: '*', role: 'viewer', name: `key ${id}`, createdAt: new Date().toISOString() },
    ...{ expiresAt: null, revokedAt: null, usedAt: null, oldUntil: null },
  });
  const schedule = (name: string) => ({
    ...{ queue: 'mail', name, when: { everyMs: 1_000 }, data: 1, missed: 'once', nextMs: null },
  });
  stage.standIn.otherwise = (_method, { pathname, searchParams }) => {
    const isRest = searchParams.get('cursor') === 'rest';
    if (pathname === '/v1/keys') return [200, { items: [key(isRest ? 2 : 1)], next: isRest ? null : 'rest' }];
    if (pathname === '/v1/schedules')
      return [200, { items: [schedule(isRest ? 'second' : 'first')], next: isRest ? null : 'rest' }];
    return undefined;
  };
  const page = await stage.open('/settings');
  await page.getByText('key 1', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Show more' }).click();
  await page.getByText('key 2', { exact: true }).waitFor();
  await page.goto(`${stage.standIn.url}/schedules`);
  await page.getByText('first', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Show more' }).click();
  await page.getByText('second', { exact: true }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Show more' }).count(), 0);
});

test('uploads beyond those that the stream brings are shown page by page', stage.needs, async () => {
  const upload = (i: number) => ({
    ...{ id: `u${i}`, tenant: 'acme', owner: null, nodeId: `n${i}`, drive: 'main', path: `file-${i}` },
    ...{ state: 'UPLOADING', size: 10, receivedBytes: 5, storedBytes: 0, missing: [] },
    ...{ createdAt: new Date().toISOString(), updatedAt: new Date().toISOString() },
  });
  const newest = Array.from({ length: 100 }, (_, i) => upload(i));
  stage.standIn.otherwise = (method, { pathname, searchParams }) => {
    if (method !== 'GET' || pathname !== '/v1/uploads') return undefined;
    const isRest = searchParams.get('cursor') === 'rest';
    return [200, isRest ? { items: [upload(100)], next: null } : { items: newest, next: 'rest' }];
  };
  const page = await stage.open('/uploads');
  await page.getByText('live', { exact: true }).waitFor();
  stage.standIn.tell('uploads', { items: newest });
  await page.getByText('main/file-99').waitFor();
  await page.getByRole('button', { name: 'Show more' }).click();
  await page.getByText('main/file-100').waitFor();
});

function event(i: number, topic = 'jobs.dead'): object {
  return { cursor: place(i), eventId: `live-${i}`, topic, key: 'k', data: { tenant: 'acme' } };
}

function place(i: number): string {
  return `${began + i * 1_000}-0`;
}

function answerWith(path: string, value: unknown): void {
  stage.standIn.otherwise = (_method, { pathname }) => (pathname === path ? [200, value] : undefined);
}

function firstCells(page: Page): Promise<string[]> {
  return page.locator('tbody td:first-child').allTextContents();
}

async function asked(line: string): Promise<void> {
  await waitUntil(line, () =>
    Promise.resolve(stage.standIn.requests.some((request) => request.line === line)),
  );
}
