/** From what is wrong to what mends it, in a real browser: jobs, letters, operations, and where the focus is afterwards. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@sluice/testbed';
import type { Locator, Page } from 'playwright-core';
import { hostile, jobOf, overviewOf } from './scenes.js';
import { useStage } from './stage.js';

const stage = useStage();

test('dead letters are replayed from the overview in two clicks', stage.needs, async () => {
  const page = await stage.open('/');
  const attention = page.getByRole('region', { name: 'Needs attention' });
  await attention.getByRole('button', { name: 'Replay all letters of document' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Replay 12 letters' }).click();
  await page.waitForURL(/\/dead\?queue=document$/);
  await page.getByText('Started; the progress is on this page.').waitFor();
  const bodies = asked('POST /v1/queues/document/dead/replay');
  assert.deepEqual(bodies, [{ choice: 'all', dryRun: true }, { choice: 'all' }]);
});

test('what needs attention says what to do, and leads to the place', stage.needs, async () => {
  stage.standIn.scene = 'broken';
  const page = await stage.open('/');
  const row = (text: string): Locator => page.locator('.attention li').filter({ hasText: text });
  await row('nobody works').getByText('Start a worker').waitFor();
  assert.equal(
    await row('nobody works').getByRole('link', { name: 'See the workers' }).getAttribute('href'),
    '/workers?queue=document',
  );
  await row('thrown keys away').getByText('noeviction').waitFor();
  assert.equal(await row('oldest job').getByRole('link', { name: 'See its limits' }).count(), 1);
  await row('append-only file').getByText('Its disk is full').waitFor();
  // A missed target leads to where it can be mended.
  const target = page.locator('.targets li').filter({ hasText: 'Oldest dead letter' });
  assert.equal(await target.getByRole('link').getAttribute('href'), '/dead');
});

test(
  'a trouble, a goal and a step of the flow that came later are shown in their own words',
  stage.needs,
  async () => {
    const overview = overviewOf('busy', Date.now());
    const attention = [{ code: 'GRAPH_LAGS', message: `the graph lags ${hostile}`, queue: 'graph' }];
    const goal = {
      name: 'graphLag',
      about: '',
      keep: 'below',
      limit: 5,
      unit: 'seconds',
      value: 9,
      met: false,
    };
    stage.standIn.otherwise = (_method, { pathname }) => {
      if (pathname === '/v1/overview') return [200, { ...overview, attention }];
      if (pathname === '/v1/alerts')
        return [200, { items: [{ ...goal, state: 'raised', link: 'javascript:1' }] }];
      if (pathname === '/v1/trace/17')
        return [200, { ...traced, graphEntities: [{ name: `Ada ${hostile}` }] }];
      return undefined;
    };
    const page = await stage.open('/');
    const row = page.locator('.attention li').filter({ hasText: 'the graph lags <img' });
    await row.getByText('broken', { exact: true }).waitFor();
    assert.equal(
      await row.getByRole('link', { name: 'See the queue' }).getAttribute('href'),
      '/queues/graph',
    );
    const target = page.locator('.targets li').filter({ hasText: 'Graph lag' });
    await target.getByText('missed').waitFor();
    assert.equal(await target.getByRole('link').count(), 0);
    await page.goto(`${stage.standIn.url}/trace?id=17`);
    await page.getByRole('region', { name: 'Graph entities' }).getByText(`Ada <img`).waitFor();
    assert.equal(await page.evaluate('window.hacked'), undefined);
  },
);

test('a job is retried, run now and cancelled', stage.needs, async () => {
  const page = await stage.open('/jobs/document/17');
  await page.getByRole('button', { name: 'Retry' }).click();
  await page.getByText('17 runs now; it was dead.').waitFor();
  const [job] = [jobOf('document', '17', Date.now())];
  stage.standIn.otherwise = (method, { pathname }) =>
    method === 'GET' && pathname === '/v1/queues/document/jobs/17'
      ? [200, { ...job, state: 'delayed', dueMs: Date.now() + 60_000 }]
      : undefined;
  await page.getByRole('button', { name: 'Run now' }).click();
  await waitUntil('two retries', () => {
    return Promise.resolve(asked('POST /v1/queues/document/jobs/17/retry').length === 2);
  });
  await page.getByRole('button', { name: 'Cancel' }).click();
  assert.equal(asked('POST /v1/queues/document/jobs/17/cancel').length, 0);
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel it' }).click();
  await page.getByText('17 is cancelled; it was dead.').waitFor();
  await page.goto(`${stage.standIn.url}/retries`);
  await page.getByRole('button', { name: 'Run now: 01JCX7RETRY0' }).click();
  await page.getByText('01JCX7RETRY0 runs now').waitFor();
  await page.getByRole('button', { name: 'Cancel 01JCX7RETRY1' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel it' }).click();
  await page.getByText('01JCX7RETRY1 is cancelled').waitFor();
});

test('the page of a job has its timeline, stack, logs, progress, result and chain', stage.needs, async () => {
  const job = jobOf('document', '17', Date.now());
  answerJob(200, { ...job, result: { text: hostile }, group: hostile });
  const page = await stage.open('/jobs/document/17');
  const panel = (name: string): Locator => page.getByRole('region', { name });
  await panel('Timeline').getByText('failed at attempt 2').waitFor();
  await panel('Timeline').getByText('timeout on worker-2').waitFor();
  await panel('Timeline').getByText('Stack').first().click();
  await page.getByLabel('Stack of attempt 1').getByText('storage.js:41:11').waitFor();
  await panel('Died of').getByLabel('Stack').getByText(`${hostile}:17:3`).waitFor();
  await panel('Logs').getByText('page 5 of 12').waitFor();
  assert.equal(await panel('Progress').getByRole('progressbar').getAttribute('aria-valuenow'), '45');
  await panel('Result').getByText('onerror').waitFor();
  await panel('About').getByText(hostile).first().waitFor();
  await panel('Chain').getByRole('link', { name: 'graph / after-1' }).waitFor();
  assert.equal(await page.evaluate('window.hacked'), undefined);
});

test('only a 404 says that a job is not known any more', stage.needs, async () => {
  answerJob(503, { error: { code: 'REDIS_UNAVAILABLE', message: 'Redis does not answer', retryable: true } });
  const page = await stage.open('/jobs/document/17');
  await page.getByRole('alert').getByText('Redis does not answer').waitFor();
  assert.equal(await page.getByText('not known any more').count(), 0);
  answerJob(404, { error: { code: 'JOB_NOT_FOUND', message: 'there is no such job' } });
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByText('This job is not known any more').waitFor();
});

test('a job whose payload was not kept is not offered for editing', stage.needs, async () => {
  const { data: _forgotten, error: _none, ...job } = jobOf('document', '17', Date.now());
  answerJob(200, { ...job, state: 'done' });
  const page = await stage.open('/jobs/document/17');
  await page.getByText('done', { exact: true }).first().waitFor();
  await page.getByRole('region', { name: 'Payload' }).getByText('was not kept').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Edit and replay' }).count(), 0);
});

test('a retried job that is done and forgotten is called that, and no failure', stage.needs, async () => {
  const page = await stage.open('/jobs/document/17');
  const retry = page.getByRole('button', { name: 'Retry' });
  await retry.waitFor();
  answerJob(404, { error: { code: 'JOB_NOT_FOUND', message: 'there is no such job' } });
  await retry.click();
  await page.getByText('This job has ended').waitFor();
  assert.equal(await retry.count(), 0);
  assert.equal(await page.getByRole('button', { name: 'Edit and replay' }).count(), 0);
  assert.equal(await page.locator('main > header .mark').count(), 0);
  assert.equal(await page.getByText('there is no such job').count(), 0);
  // What was last known stays.
  await page.getByRole('region', { name: 'Timeline' }).getByText('failed at attempt 2').waitFor();
});

test('an operation at work can be stopped, however many came after it', stage.needs, async () => {
  const operation = (id: string, state: string) => ({
    ...{ id, kind: 'dead.replay', queue: 'document', state, createdMs: Date.now(), by: id },
    progress: { moved: 1, total: 3 },
  });
  const newer = Array.from({ length: 120 }, (_, i) => operation(`newer-${120 - i}`, 'done'));
  const all = [...newer, operation('slow', 'running'), operation('oldest', 'waiting')];
  stage.standIn.otherwise = (method, { pathname, searchParams }) => {
    if (method !== 'GET' || pathname !== '/v1/operations') return undefined;
    const states = searchParams.get('state')?.split(',') ?? [];
    const items = all.filter(({ state }) => states.includes(state));
    return [200, { items: items.slice(0, Number(searchParams.get('limit'))), next: null }];
  };
  const page = await stage.open('/dead');
  const rows = page.getByRole('region', { name: 'Operations', exact: true }).first().locator('tbody tr');
  await rows.first().waitFor();
  const by = await rows.locator('td:nth-child(4)').allTextContents();
  assert.deepEqual(by, [
    ...['slow', 'oldest'],
    ...['newer-120', 'newer-119', 'newer-118', 'newer-117', 'newer-116'],
  ]);
  await page.getByRole('button', { name: 'Stop operation slow' }).click();
  await page.getByText('It stops; what was done stays done.').waitFor();
});

test('an operation that failed goes on where it stopped', stage.needs, async () => {
  const failed = { id: 'o7', kind: 'dead.replay', queue: 'document', state: 'failed', createdMs: Date.now() };
  stage.standIn.otherwise = (method, { pathname }) =>
    method === 'GET' && pathname === '/v1/operations'
      ? [
          200,
          {
            items: [
              { ...failed, progress: { moved: 1, total: 3 }, by: hostile, error: { message: hostile } },
            ],
          },
        ]
      : undefined;
  const page = await stage.open('/dead');
  await page.getByRole('cell', { name: hostile }).first().waitFor();
  await page.getByRole('button', { name: 'Resume operation o7' }).click();
  await page.getByText('It goes on where it stopped.').waitFor();
  assert.equal(asked('POST /v1/operations/o7/resume').length, 1);
});

test('the focus returns to what opened a dialog, however it was closed', stage.needs, async () => {
  const page = await stage.open('/dead?queue=document');
  const replay = page.getByRole('button', { name: 'Replay all matching' });
  await replay.focus();
  for (const close of ['Keep them', 'Close']) {
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').getByRole('button', { name: close }).click();
    // The browser gives the focus back at once; the page takes the dialog away a moment later.
    await page.locator('dialog').waitFor({ state: 'detached' });
    await hasFocus(page, 'Replay all matching');
  }
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').getByRole('button', { name: 'Replay 12 letters' }).click();
  await page.getByText('Started; the progress is on this page.').waitFor();
  await hasFocus(page, 'Replay all matching');
  await page.goto(`${stage.standIn.url}/jobs?queue=document`);
  const cancel = page.getByRole('button', { name: /^Cancel 01JCX9/ }).first();
  await cancel.focus();
  const name = (await cancel.getAttribute('aria-label'))!;
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel it' }).click();
  await page.getByText('is cancelled; it was dead.').waitFor();
  await hasFocus(page, name);
});

test('nothing that is announced ticks', stage.needs, async () => {
  stage.standIn.scene = 'broken';
  const page = await stage.open('/');
  await page.getByRole('alert').getByText('Redis does not answer').waitFor();
  await page.locator('.notice time').waitFor();
  assert.equal(await page.locator('[role=alert] time, [role=status] time').count(), 0);
});

test('an id from the search on top replaces the one that is followed', stage.needs, async () => {
  const page = await stage.open('/trace?id=17');
  await page.getByRole('heading', { name: '1 · Upload' }).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('abc-18');
  await page.keyboard.press('Enter');
  await page.waitForURL(/id=abc-18/);
  const field = page.getByLabel('Id of an upload, a file, an event or a job');
  await waitUntil('the new id', async () => (await field.inputValue()) === 'abc-18');
});

test(
  'of a queue that nobody has opened nothing can be paused; the page says how to open it',
  stage.needs,
  async () => {
    stage.standIn.scene = 'empty';
    const page = await stage.open('/queues/document');
    await page.getByText('There is no queue document').waitFor();
    assert.equal(await page.getByRole('button', { name: 'Pause' }).count(), 0);
    assert.equal(await page.locator('.notice').count(), 0);
  },
);

test('what the server itself cannot see is said on every page', stage.needs, async () => {
  stage.standIn.scene = 'broken';
  const page = await stage.open('/');
  for (const title of ['Queues', 'Workers', 'Overview']) {
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: title }).click();
    await page.getByRole('heading', { name: title, level: 1 }).waitFor();
    await page.getByRole('alert').filter({ hasText: 'ECONNREFUSED' }).waitFor();
    assert.equal(await page.getByRole('alert').count(), 1);
  }
});

test(
  'without a drive nothing can be sent, and the page leads to where one is made',
  stage.needs,
  async () => {
    stage.standIn.scene = 'empty';
    const page = await stage.open('/uploads');
    await page.getByText('There is no drive yet').getByRole('link', { name: 'Files' }).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Choose files' }).isDisabled(), true);
    assert.equal(await page.getByLabel('Drive').count(), 0);
  },
);

test('where no letter is, there is nothing to replay or discard', stage.needs, async () => {
  const page = await stage.open('/dead?queue=document');
  await page.getByRole('button', { name: 'Discard all matching' }).waitFor();
  stage.standIn.scene = 'empty';
  await page.goto(`${stage.standIn.url}/dead?queue=document`);
  await page.getByText('There is no letter').waitFor();
  assert.equal(await page.getByRole('button', { name: /all matching/ }).count(), 0);
});

test('an empty text file is said to be empty', stage.needs, async () => {
  stage.standIn.otherwise = (_method, { pathname }) =>
    pathname === '/v1/nodes/n9'
      ? [
          200,
          {
            id: 'n9',
            name: 'empty.txt',
            path: 'empty.txt',
            type: 'FILE',
            status: 'ACTIVE',
            size: 0,
            contentType: 'text/plain',
            updatedAt: new Date().toISOString(),
          },
        ]
      : undefined;
  const page = await stage.open('/files?file=n9');
  await page.getByText('The file is empty.').waitFor();
});

test('a list that failed does not also say that it loads', stage.needs, async () => {
  stage.standIn.otherwise = (_method, { pathname }) =>
    pathname === '/v1/retries' ? [503, { error: { code: 'X', message: 'not now' } }] : undefined;
  const page = await stage.open('/retries');
  await page.getByText('not now').waitFor();
  assert.equal(await page.getByText('Loading…').count(), 0);
  stage.standIn.otherwise = (_method, { pathname }) =>
    pathname === '/v1/drives' ? [503, { error: { code: 'X', message: 'no drives now' } }] : undefined;
  await page.goto(`${stage.standIn.url}/files`);
  await page.getByText('no drives now').waitFor();
  await page.getByText('Not read').waitFor();
  assert.equal(await page.getByText('Loading…').count(), 0);
});

test('letters are exported with the filters that stand on the page', stage.needs, async () => {
  const page = await stage.open('/dead?queue=document&fingerprint=f0&text=slow');
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Export' }).click();
  assert.match((await download).url(), /\/v1\/queues\/document\/dead\/export\?fingerprint=f0&text=slow$/);
});

test('a file is downloaded, and deleted after a question', stage.needs, async () => {
  const page = await stage.open('/files?drive=main');
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Download' }).first().click();
  assert.match((await download).url(), /\/v1\/nodes\/n1\/content\?disposition=attachment$/);
  await page.getByRole('button', { name: 'Delete annual.pdf' }).click();
  assert.deepEqual(asked('DELETE /v1/nodes/n1?recursive=false'), []);
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByText('annual.pdf is deleted.').waitFor();
  assert.equal(asked('DELETE /v1/nodes/n1?recursive=false').length, 1);
});

const traced = {
  ...{ id: '17', kind: 'graph', upload: null, node: null, events: [], waitingEvents: 0, jobs: [] },
  bounds: { events: { scanned: 0, complete: true }, jobs: { scanned: 0, complete: true } },
};

function answerJob(status: number, value: unknown): void {
  stage.standIn.otherwise = (method, { pathname }) =>
    method === 'GET' && pathname === '/v1/queues/document/jobs/17' ? [status, value] : undefined;
}

async function hasFocus(page: Page, name: string): Promise<void> {
  const read = `document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent`;
  await waitUntil(`the focus on ${name}`, async () => (await page.evaluate(read)) === name);
}

/** The bodies of what was asked for, with nothing for an empty one. */
function asked(line: string): unknown[] {
  return stage.standIn.requests
    .filter((request) => request.line === line)
    .map(({ body }) => (body === '' ? null : (JSON.parse(body) as unknown)));
}
