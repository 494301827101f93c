/** Lists and their filters, in a real browser: what is written stays, what is listed stands in its order, and none ends silently. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@sluice/testbed';
import type { Page } from 'playwright-core';
import { newestFirst } from '../src/eventOrder.js';
import { groupsOf, overviewOf, workersOf } from './scenes.js';
import { useStage } from './stage.js';
import { walk } from './visit.js';

const stage = useStage();
const began = Date.now();

test('what is half written in a filter outlives the news', stage.needs, async () => {
  const page = await stage.open('/events');
  await page.getByRole('cell', { name: 'repository.documents.created' }).first().waitFor();
  await page.getByText('live', { exact: true }).waitFor();
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
  await page.getByText('live', { exact: true }).waitFor();
  stage.standIn.tell('events', event(1, 'repository.documents.deleted'), place(1));
  stage.standIn.tell('events', event(2, 'jobs.dead'), place(2));
  await page.getByText('live-1', { exact: true }).waitFor();
  assert.equal(await page.getByText('live-2', { exact: true }).count(), 0);
});

test('after a gap in the stream the list is asked for again', stage.needs, async () => {
  const page = await stage.open('/events');
  await page.getByRole('table').waitFor();
  await page.getByText('live', { exact: true }).waitFor();
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
  let left = 12;
  const letters = '/v1/queues/document/dead';
  stage.standIn.twist = (value, address) => {
    if (address?.pathname !== letters || left === 0) return value;
    return address.searchParams.has('cursor')
      ? { items: [], next: null }
      : { ...(value as object), next: 'rest' };
  };
  const page = await stage.open('/dead?queue=document');
  await page.getByLabel('Choose 01JCX8DEAD0').waitFor();
  // Whoever has asked for later pages reads: from now on the list is asked for only when something says so.
  const list = page.getByRole('region', { name: 'Letters of document' });
  await list.getByRole('button', { name: 'Show more' }).click();
  await list.getByRole('button', { name: 'Show more' }).waitFor({ state: 'detached' });
  const operation = { id: 'o1', kind: 'dead.replay', queue: 'document', createdMs: began };
  stage.standIn.otherwise = (method, { pathname }) => {
    if (method === 'GET' && pathname === '/v1/operations') {
      const progress = { moved: 12 - left, total: 12 };
      return [200, { items: [{ ...operation, progress, state: left === 0 ? 'done' : 'running' }] }];
    }
    if (pathname === letters && left === 0) return [200, { items: [], next: null }];
    return undefined;
  };
  await page.getByText('0 of 12').waitFor();
  left = 0;
  await page.getByText('There is no letter').waitFor();
});

test(
  'a list is shown although each answer takes longer than the page waits before it asks again',
  stage.needs,
  async () => {
    const page = await stage.open('/redis');
    await page.getByText('live', { exact: true }).waitFor();
    stage.standIn.slowMs = 2_500;
    await page.getByRole('link', { name: /^Dead letters/ }).click();
    // Operations are asked for every second and a half.
    await page.getByText('410 of 1,200').waitFor();
  },
);

/** Every list that the server pages, with the panel it stands in and the field by which the last row is known. */
const paged: { path: string; asks: string; panel: string; field: string }[] = [
  { path: '/jobs', asks: '/v1/queues/document/jobs', panel: 'Jobs of document', field: 'id' },
  { path: '/retries', asks: '/v1/retries', panel: 'Next attempts', field: 'id' },
  { path: '/dead', asks: '/v1/queues/document/dead', panel: 'Letters of document', field: 'id' },
  { path: '/schedules', asks: '/v1/schedules', panel: 'Schedules', field: 'name' },
  { path: '/files', asks: '/v1/nodes', panel: 'Drive main', field: 'name' },
  { path: '/events', asks: '/v1/events', panel: 'Published', field: 'eventId' },
  { path: '/audit', asks: '/v1/audit', panel: 'Changes', field: 'actorName' },
  { path: '/settings', asks: '/v1/keys', panel: 'Keys', field: 'name' },
];

test('every list goes on to its last row, and says that there is more until then', stage.needs, async () => {
  stage.standIn.twist = (value, address) => {
    const list = paged.find(({ asks }) => asks === address?.pathname);
    if (!address || !list) return value;
    const { items, nodes, ...rest } = value as { items?: object[]; nodes?: object[] };
    const isRest = (address.searchParams.get('cursor') ?? address.searchParams.get('after')) === 'rest';
    const rows = items ?? nodes!;
    const last = { ...rows.at(-1), id: 'last', cursor: '1-0', [list.field]: 'the last row' };
    const shown = isRest ? [last] : rows;
    return { ...rest, [items ? 'items' : 'nodes']: shown, next: isRest ? null : 'rest', scanned: 0 };
  };
  const page = await stage.open('/');
  for (const { path, panel } of paged) {
    await walk(page, path);
    const list = page.getByRole('region', { name: panel, exact: true });
    await list.getByText('; there are more').waitFor();
    assert.equal(await list.getByText('the last row', { exact: true }).count(), 0, path);
    await list.getByRole('button', { name: 'Show more' }).click();
    await list.getByText('the last row', { exact: true }).waitFor();
    assert.equal(await list.getByRole('button', { name: 'Show more' }).count(), 0, path);
  }
});

test('a first page without a row leads on, and does not say that there is none', stage.needs, async () => {
  stage.standIn.twist = (value, address) => {
    if (address?.pathname === '/v1/dead/groups') return { items: [], letters: 0, complete: false };
    // The overview also comes by itself, without an address.
    const isOverview = typeof value === 'object' && value !== null && 'retries' in value;
    if (isOverview) return { ...value, retries: { queues: [], count: 0, complete: false, nextMs: null } };
    const list = paged.find(({ asks }) => asks === address?.pathname);
    if (!address || !list) return value;
    const { items, nodes, ...rest } = value as { items?: object[]; nodes?: object[] };
    const isRest = (address.searchParams.get('cursor') ?? address.searchParams.get('after')) === 'rest';
    const last = { ...(items ?? nodes!).at(-1), id: 'last', cursor: '1-0', [list.field]: 'the last row' };
    const shown = isRest ? [last] : [];
    const next = isRest ? null : 'rest';
    // Not every list says how many it looked at.
    return { ...rest, [items ? 'items' : 'nodes']: shown, next, scanned: list.field === 'id' ? 0 : 5_000 };
  };
  const page = await stage.open('/');
  const overview = page.getByRole('region', { name: 'Retry queues' });
  await overview.getByText('No retry so far').waitFor();
  await overview.getByRole('link', { name: 'Look further' }).waitFor();
  for (const { path, panel } of paged) {
    await walk(page, path);
    const list = page.getByRole('region', { name: panel, exact: true });
    await list.getByRole('heading', { name: /^No \w+ so far$/ }).waitFor();
    await list.getByText('; there may be more').waitFor();
    if (path === '/dead') {
      await page.getByRole('heading', { name: 'No cause so far' }).waitFor();
      await list.getByRole('button', { name: 'Replay all matching' }).waitFor();
    }
    await list.getByRole('button', { name: 'Look further' }).click();
    await list.getByText('the last row', { exact: true }).waitFor();
    assert.equal(await list.getByRole('button', { name: 'Look further' }).count(), 0, path);
  }
});

test('where a filter leaves nothing, nobody says that there is nothing at all', stage.needs, async () => {
  stage.standIn.scene = 'empty';
  const page = await stage.open('/audit');
  const titles: [path: string, title: string][] = [
    ['/audit', 'Nobody has changed anything'],
    ['/audit?action=key.create', 'No change matches'],
    ['/audit?actor=k1', 'No change matches'],
    ['/events', 'Nothing has happened yet'],
    ['/events?topic=jobs.dead', 'No event matches'],
    ['/retries', 'Nothing waits for another attempt'],
    ['/retries?queue=mail', 'No job matches'],
    ['/schedules?queue=mail', 'No schedule matches'],
    ['/dead?queue=mail&text=timeout', 'No letter matches'],
    ['/dead?queue=mail', 'Nothing has died in mail'],
    ['/jobs?queue=mail&id=17', 'No job matches'],
    ['/workers', 'Nobody works'],
    ['/workers?queue=mail', 'Nobody works on mail'],
  ];
  for (const [path, title] of titles) {
    await page.goto(stage.standIn.url + path);
    await page.getByRole('heading', { name: title, exact: true }).waitFor();
  }
});

test('a page that continues an old list is not added to the new one', stage.needs, async () => {
  stage.standIn.otherwise = (_method, { pathname, searchParams }) => {
    if (pathname !== '/v1/audit') return undefined;
    const action = searchParams.get('action') ?? 'queue.pause';
    return [200, { items: [change(action, searchParams.get('after') ?? 'first')], next: `after ${action}` }];
  };
  const page = await stage.open('/audit');
  const isRest = (address: string): boolean => new URL(address).searchParams.has('after');
  let release = (): void => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  await page.route('**/v1/audit?*', async (route) => {
    if (isRest(route.request().url())) await held;
    // One that was given up meanwhile cannot go on.
    await route.continue().catch(() => {});
  });
  const givenUp = (): Promise<unknown> =>
    page.waitForEvent('requestfailed', (request) => isRest(request.url()));
  // Somebody changes the filter while the next page is on its way.
  let gone = givenUp();
  await page.getByRole('button', { name: 'Show more' }).click();
  await page.getByLabel('Action').fill('key.create');
  await page.keyboard.press('Enter');
  await gone;
  await page.getByRole('link', { name: 'key.create' }).waitFor();
  // And goes back to the list, of which a page was on its way before.
  gone = givenUp();
  await page.getByRole('button', { name: 'Show more' }).click();
  await page.getByLabel('Action').fill('');
  await page.keyboard.press('Enter');
  await gone;
  release();
  await page.getByRole('link', { name: 'queue.pause' }).waitFor();
  assert.equal(await page.locator('tbody tr').count(), 1);
  await page.getByRole('button', { name: 'Show more' }).click();
  await page.getByText('after queue.pause').waitFor();
  assert.equal(await page.locator('tbody tr').count(), 2);
});

test('whoever comes back to a list finds it as it is now, and live', stage.needs, async () => {
  let round = 0;
  stage.standIn.otherwise = (method, { pathname, searchParams }) => {
    if (method !== 'GET' || pathname !== '/v1/audit') return undefined;
    const isRest = searchParams.has('after');
    const action = searchParams.get('action') ?? `round-${round}`;
    const row = {
      id: action,
      at: began,
      action: isRest ? 'queue.more' : action,
      actorName: 'me',
      outcome: 'done',
    };
    return [200, { items: [row], next: isRest ? null : 'rest' }];
  };
  const page = await stage.open('/audit');
  await page.getByRole('button', { name: 'Show more' }).click();
  await page.getByText('queue.more').waitFor();
  const filter = async (action: string): Promise<void> => {
    await page.getByLabel('Action').fill(action);
    await page.keyboard.press('Enter');
  };
  await filter('key.create');
  await page.getByRole('link', { name: 'key.create' }).waitFor();
  round = 1;
  await filter('');
  await page.getByText('round-1').waitFor();
  assert.equal(await page.getByText('queue.more').count(), 0);
  round = 2;
  await page.getByText('round-2').waitFor();
});

test('a list that is asked for anew does not go on with a page of before', stage.needs, async () => {
  let round = 0;
  stage.standIn.otherwise = (method, { pathname, searchParams }) => {
    if (pathname.endsWith('/retry')) round++;
    if (method !== 'GET' || pathname !== '/v1/retries') return undefined;
    const id = searchParams.get('cursor') ?? `first-${round}`;
    return [200, { items: [{ queue: 'mail', id, dueMs: began + 9e6 }], next: `after-${id}` }];
  };
  const page = await stage.open('/retries');
  await page.route('**/v1/retries?*cursor=*', () => {});
  const gone = page.waitForEvent('requestfailed', (request) =>
    request.url().includes('cursor=after-first-0'),
  );
  await page.getByRole('button', { name: 'Show more' }).click();
  await page.getByRole('button', { name: 'Run now: first-0' }).click();
  await gone;
  await page.getByRole('link', { name: 'first-1' }).waitFor();
  await page.unroute('**/v1/retries?*cursor=*');
  await page.getByRole('button', { name: 'Show more' }).click();
  await page.getByRole('link', { name: 'after-first-1' }).waitFor();
  assert.deepEqual(await firstCells(page), ['first-1', 'after-first-1']);
});

test('lists that come as a whole show their first rows, and the others when asked', stage.needs, async () => {
  const hook = (i: number) => ({
    id: `w${i}`,
    tenant: 'acme',
    url: `https://example.com/${i}`,
    topics: ['a'],
  });
  const hooks = (first: number) => Array.from({ length: 40 }, (_, i) => hook(first + i));
  const overview = overviewOf('busy', Date.now());
  const queue = overview.queues[0]!;
  overview.queues = Array.from({ length: 230 }, (_, i) => ({ ...queue, name: `queue-${1_000 + i}` }));
  stage.standIn.otherwise = (_method, { pathname, searchParams }) => {
    const isRest = searchParams.get('after') === 'rest';
    if (pathname === '/v1/overview') return [200, overview];
    if (pathname === '/v1/workers')
      return [200, { items: workersOf(began, 330), next: null, complete: true }];
    if (pathname === '/v1/dead/groups')
      return [200, { ...groupsOf('busy', began), complete: searchParams.get('limit') === '500' }];
    if (pathname === '/v1/webhooks' && searchParams.get('tenant') !== '*')
      return [200, { items: hooks(isRest ? 40 : 0), next: isRest ? null : 'rest' }];
    return undefined;
  };
  const page = await stage.open('/');
  await page.getByText('10 of 230 queues').waitFor();
  const more = async (path: string, panel: string, before: string, last: string): Promise<void> => {
    await walk(page, path);
    const list = page.getByRole('region', { name: panel, exact: true });
    await list.getByText(before).waitFor();
    await list.getByRole('button', { name: 'Show more' }).click();
    await list.getByText(last, { exact: true }).first().waitFor();
    await list.getByText(before).waitFor({ state: 'detached' });
  };
  await more('/queues', 'Queues', '200 of 230 queues', 'queue-1229');
  await more('/workers', 'Workers', '300 of 330 workers', 'worker-329');
  await more('/settings', 'Webhooks', '50 of 81 webhooks', 'https://example.com/79');
  await more(
    '/dead',
    'Causes',
    'The 5 most frequent causes; there are more.',
    'FfmpegError: moov atom not found',
  );
});

test('more drives than anybody reads are chosen by their name', stage.needs, async () => {
  const drives = (first: number) =>
    Array.from({ length: 20 }, (_, i) => ({ id: `d${first + i}`, name: `drive-${first + i}` }));
  stage.standIn.otherwise = (_method, { pathname, searchParams }) => {
    const isRest = searchParams.get('after') === 'rest';
    return pathname === '/v1/drives' ? [200, { drives: drives(isRest ? 20 : 0), next: 'rest' }] : undefined;
  };
  const page = await stage.open('/files');
  await page.getByText('40 drives are offered, there are more; write the name of one').waitFor();
  await page.getByRole('combobox', { name: /^Drive/ }).fill('drive-977');
  await page.keyboard.press('Enter');
  await page.waitForURL(/drive=drive-977/);
  await asked('GET /v1/nodes?drive=drive-977');
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

function change(action: string, target: string): object {
  const at = new Date(began).toISOString();
  return { id: `${action} ${target}`, at, endedAt: at, action, actor: 'k1', outcome: 'done', target };
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
