/** Figures, targets and charts, in a real browser: what the server says stands on the page, is judged there, and reaches back as far as asked. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@sluice/testbed';
import type { Locator, Page } from 'playwright-core';
import { groupsOf, overviewOf, seriesOf } from './scenes.js';
import { useStage } from './stage.js';
import { sparkPath } from '../src/parts/spark.js';

const stage = useStage();

const panel = (page: Page, name: string): Locator => page.getByRole('region', { name, exact: true });

/** The cells of a row; the first one names it. */
async function row(of: Locator, name: string): Promise<string[]> {
  const cells = of.getByRole('row').filter({ has: of.page().getByRole('cell', { name, exact: true }) });
  await cells.first().waitFor();
  return cells.first().getByRole('cell').allInnerTexts();
}

const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim();

test(
  'every panel of the overview shows the figures of the server, and how they are to be judged',
  stage.needs,
  async () => {
    const page = await stage.open('/');
    const figure = async (label: string): Promise<string> =>
      oneLine(await page.locator('.figure').filter({ hasText: label }).first().innerText());
    await panel(page, 'Dead letters').waitFor();
    assert.equal(await figure('Waiting'), 'Waiting 1,379 oldest 41 sec');
    assert.equal(await figure('Running'), 'Running 37 14 workers');
    assert.equal(await figure('Done'), 'Done 128/s 131/s added');
    assert.equal(await figure('Failing'), 'Failing 2.5/s 0.2/s die');
    assert.equal(await figure('Dead letters'), 'Dead letters 25 tried 3.4 times each');
    assert.match(await figure('Retries'), /^Retries 9 next in 1 min 4\d sec$/);
    assert.equal(await figure('Uploads open'), 'Uploads open 3 every event told');

    const dead = panel(page, 'Dead letters');
    const timeout = 'StorageTimeout: no answer from storage within <n> ms';
    assert.deepEqual(await row(dead, 'document'), ['document', '12', '2.0', timeout]);
    assert.deepEqual((await row(dead, 'audio')).slice(1), ['3', '2.4', 'FfmpegError: moov atom not found']);

    const retries = panel(page, 'Retry queues');
    // Each second another one, until the next look.
    await retries.getByText('2 min 30 sec').waitFor();
    await retries.getByText('5 min 15 sec').waitFor();
    assert.deepEqual((await row(retries, 'document')).slice(0, 2), ['document', '3']);
    assert.deepEqual(
      (await retries.getByRole('row').allInnerTexts()).map((text) => oneLine(text).split(' ')[0]),
      ['Queue', 'graph', 'document', 'audio'],
    );

    const cache = panel(page, 'Cache');
    assert.deepEqual(await row(cache, 'user'), ['user', '95 %', '✓ 95 %', '10,234', '14 min 10 sec']);
    assert.deepEqual(await row(cache, 'job:status'), ['job:status', '90 %', '✓ 90 %', '25,678', '4 sec']);
    assert.deepEqual(await row(cache, 'graph'), ['graph', '62 %', '✗ 75 %', '876', '14 min 10 sec']);
    await cache.getByText('88 % hits, 483 reads/s').waitFor();

    const redis = panel(page, 'Redis');
    assert.deepEqual((await redis.locator('dd').allInnerTexts()).map(oneLine), [
      '125 MiB of 512 MiB (24 %)',
      '12,450',
      '1,234 per second',
      '45, 12 of them waiting',
      '0.00 % none',
      'noeviction',
      '70.0 MiB written',
      '4 d 4 h',
    ]);

    const targets = panel(page, 'Targets');
    const target = async (title: string): Promise<string> =>
      oneLine(await targets.getByRole('listitem').filter({ hasText: title }).innerText());
    await targets.getByText('1 missed', { exact: true }).waitFor();
    assert.equal(await target('Oldest dead letter'), 'Oldest dead letter 2 h 30 min less than 1 d ✓ met');
    assert.equal(await target('Retries that help'), 'Retries that help 99 % more than 90 % ✓ met');
    assert.equal(await target('Storage calls saved'), 'Storage calls saved 85 % more than 80 % ✓ met');
    assert.equal(await target('Waiting saved'), 'Waiting saved 64 % more than 70 % ✗ missed');

    const charts = ['Jobs done per minute', 'Waiting and running time', 'Failed attempts and dead letters'];
    for (const label of charts) await page.getByRole('figure', { name: label }).locator('canvas').waitFor();
    assert.equal(await panel(page, 'Queues').getByRole('row').count(), 9);
    await panel(page, 'Files and events').getByText('none waits').waitFor();
  },
);

test('the trend of a cause is drawn from how many died of it in which hour', stage.needs, async () => {
  const page = await stage.open('/dead');
  const { items } = groupsOf('busy', Date.now());
  const cause = page.getByRole('row').filter({ hasText: 'FfmpegError' });
  const trend = cause.getByRole('img');
  await trend.waitFor();
  assert.equal(await trend.locator('path').getAttribute('d'), sparkPath(items[1]!.perHour!));
  const label = await trend.getAttribute('aria-label');
  assert.ok(label!.endsWith(`deaths per hour, ${items[1]!.perHour!.join(', ')}`), label!);
});

test(
  'a missed target is a warning, and a raised alert counts in the title of the tab',
  stage.needs,
  async () => {
    const page = await stage.open('/');
    const verdict = page.locator('.verdict');
    assert.equal(oneLine(await verdict.innerText()), '4 warnings');
    const attention = page.locator('.attention li');
    const missed = attention.filter({ hasText: 'Waiting saved' });
    await missed.getByText('Waiting saved: 64 %, should be more than 70 %.').waitFor();
    await missed.locator('.mark.warn').getByText('missed', { exact: true }).waitFor();
    await missed.getByText('Look for the family that is slow to load.').waitFor();
    assert.equal(await missed.getByRole('link', { name: 'See why' }).getAttribute('href'), '/cache');
    assert.equal(await page.title(), 'Overview · Sluice');
    stage.standIn.scene = 'broken';
    const raised = attention.filter({ hasText: 'Permanent failures' });
    await raised.getByText('Permanent failures: 20 %, should be less than 5.0 %.').waitFor();
    await raised.locator('.mark.bad').getByText('missed', { exact: true }).waitFor();
    // Five that are broken, four alerts that are raised, and Redis, which the server cannot reach.
    await verdict.getByText('10 broken').waitFor();
    await waitUntil('the title says so', async () => (await page.title()) === '(10) Overview · Sluice');
    stage.standIn.scene = 'empty';
    await page.getByText('all is well').waitFor();
    await waitUntil('the title is clear', async () => (await page.title()) === 'Overview · Sluice');
  },
);

test('a queue whose jobs all fail is paused from the overview', stage.needs, async () => {
  stage.standIn.scene = 'broken';
  const page = await stage.open('/');
  const failing = page.locator('.attention li').filter({ hasText: '1,204 of 1,225 attempts failed' });
  assert.equal(
    await failing.getByRole('link', { name: 'See the queue' }).getAttribute('href'),
    '/queues/audio',
  );
  await failing.getByRole('button', { name: 'Pause' }).click();
  const isAsked = (): boolean =>
    stage.standIn.requests.some(({ line }) => line === 'POST /v1/queues/audio/pause');
  await waitUntil('it is paused', isAsked);
});

test('a queue of Sluice itself is not paused because its jobs fail', stage.needs, async () => {
  const overview = overviewOf('busy', Date.now());
  const own = { ...overview.queues[0]!, name: 'sluice.webhooks', reserved: true };
  const item = { code: 'JOBS_FAIL', message: '20 of 20 attempts failed just now', queue: own.name };
  const shown = { ...overview, queues: [own], attention: [item] };
  stage.standIn.otherwise = (_method, { pathname }) =>
    pathname === '/v1/overview' ? [200, shown] : undefined;
  const page = await stage.open('/');
  const failing = page.locator('.attention li').filter({ hasText: '20 of 20 attempts failed' });
  await failing.getByRole('link', { name: 'See the queue' }).waitFor();
  assert.equal(await failing.getByRole('button', { name: 'Pause' }).count(), 0);
});

test('lists on the overview say how many there are, and where counting stopped', stage.needs, async () => {
  const overview = overviewOf('busy', Date.now());
  const retries = Array.from({ length: 12 }, (_, i) => ({
    ...{ queue: `later-${i}`, count: i === 0 ? 1_000 : 2, complete: i > 0 },
    nextMs: overview.atMs + 60_000 * (i + 1),
  }));
  overview.retries = { count: 1_022, complete: false, nextMs: retries[0]!.nextMs, queues: retries };
  const [letters] = overview.dead.queues;
  overview.dead.queues = Array.from({ length: 20 }, (_, i) => ({ ...letters!, queue: `dead-${i}` }));
  overview.dead.queueCount = 29;
  stage.standIn.otherwise = (_method, { pathname }) =>
    pathname === '/v1/overview' ? [200, overview] : undefined;
  const page = await stage.open('/');
  const queues = panel(page, 'Retry queues');
  assert.equal((await row(queues, 'later-0'))[1], '1,000+');
  assert.equal((await row(queues, 'later-7'))[1], '2');
  await queues.getByText('1,022+', { exact: true }).waitFor();
  await queues.getByText('8 of 12 queues').waitFor();
  await panel(page, 'Dead letters').getByText('8 of 29 queues').waitFor();
});

test('charts reach back as far as the address says, on every page that has some', stage.needs, async () => {
  const page = await stage.open('/');
  const asked = (wanted: RegExp): Promise<unknown> =>
    waitUntil(`${wanted}`, () => stage.standIn.requests.some(({ line }) => wanted.test(line)));
  const span = page.getByLabel('History');
  await page.getByRole('figure', { name: 'Jobs done per minute in the last hour' }).waitFor();
  await span.selectOption('last week');
  await page.waitForURL(/\?span=week$/);
  await asked(/queues\/document\/series\?step=hour$/);
  await page.getByRole('figure', { name: 'Jobs done per hour in the last week' }).locator('canvas').waitFor();
  await panel(page, 'Throughput').getByText('jobs per hour').waitFor();
  await page.reload();
  await page.getByRole('figure', { name: 'Jobs done per hour in the last week' }).locator('canvas').waitFor();
  await page.goto(`${stage.standIn.url}/queues/audio?span=quarter`);
  await page.getByRole('figure', { name: 'per day in the last 90 days' }).first().waitFor();
  await asked(/queues\/audio\/series\?step=day$/);
  await span.selectOption('last day');
  await asked(/queues\/audio\/series\?step=hour&from=\d+$/);
  await page.goto(`${stage.standIn.url}/redis?span=week`);
  await asked(/redis\/series\?step=hour$/);
  await page.goto(`${stage.standIn.url}/cache?span=week`);
  await page.getByRole('figure', { name: 'Hit rate of all families, per hour, in the last week' }).waitFor();
  await asked(/cache\/\*\/series\?step=hour$/);
  await page.getByLabel('Family').selectOption('graph');
  const rate = page.getByRole('figure', { name: 'Hit rate of graph, per hour, in the last week' });
  await rate.locator('canvas').waitFor();
  await asked(/cache\/graph\/series\?step=hour$/);
  const last = seriesOf('busy', Date.now(), 2, 'hour').points.at(-1)!.figures!;
  const shown = `${((last['hits']! / last['reads']!) * 100).toFixed(0)} %`;
  await rate.locator('.legend').getByText(`hits ${shown}`).waitFor();
});

test('a minute with work between minutes without any is a dot in the charts', stage.needs, async () => {
  const series = seriesOf('busy', Date.now(), 1);
  // Every tenth minute, and none beside another.
  for (const [i, point] of series.points.entries())
    point.figures = i % 10 === 5 ? { runP95Ms: 500, waitP95Ms: 20 } : null;
  stage.standIn.otherwise = (_method, { pathname }) =>
    pathname.endsWith('/series') ? [200, series] : undefined;
  const page = await stage.open('/queues/document');
  const chart = page.getByRole('figure', { name: 'Waiting and running time' }).locator('canvas');
  await chart.waitFor();
  // Separate spots in the upper third, where the running time is, right of what is written on the axis. A line of the grid is thinner.
  const spots = (): Promise<number> =>
    chart.evaluate((element) => {
      const canvas = element as HTMLCanvasElement;
      const { width, height } = canvas;
      const pixels = canvas.getContext('2d')!.getImageData(0, 0, width, height).data;
      let [count, wasInked] = [0, false];
      for (let x = Math.floor(width / 5); x < width; x++) {
        let ink = 0;
        for (let y = 0; y < height / 3; y++) if (pixels[(y * width + x) * 4 + 3]! > 128) ink++;
        const isInked = ink > 2;
        if (isInked && !wasInked) count++;
        wasInked = isInked;
      }
      return count;
    });
  await waitUntil('six dots', async () => (await spots()) === 6);
});

test('charts say that they wait, and that they failed; those that are there stay', stage.needs, async () => {
  let mode: 'silent' | 'refused' | 'there' = 'silent';
  const overview = overviewOf('busy', Date.now());
  stage.standIn.otherwise = (_method, { pathname }) => {
    if (pathname === '/v1/overview') return [200, overview];
    if (!pathname.endsWith('/series')) return undefined;
    // One that is gone when its history is asked for takes none of the others away.
    if (mode === 'there')
      return pathname.includes('/thumbnails/') ? [404, { error: { code: 'UNKNOWN_QUEUE' } }] : undefined;
    return [503, { error: { code: 'REDIS_UNAVAILABLE', message: 'the history is out of reach' } }];
  };
  const page = await stage.open('/queues');
  await page.route(/\/series/, (route) => (mode === 'silent' ? undefined : route.continue()));
  await page.getByRole('link', { name: 'Overview', exact: true }).click();
  const throughput = panel(page, 'Throughput');
  await throughput.getByText('Loading…').waitFor();
  assert.equal(await page.getByText('Nothing yet').count(), 0);
  mode = 'refused';
  await page.getByLabel('History').selectOption('last week');
  await throughput.getByText('The figures could not be had.').waitFor();
  await page.getByRole('alert').getByText('the history is out of reach').waitFor();
  mode = 'there';
  // By itself, a moment later.
  const canvas = throughput.locator('canvas');
  await canvas.waitFor();
  await page.getByText('the history is out of reach').waitFor({ state: 'detached' });
  // A queue that comes later takes nothing away.
  await canvas.evaluate((element) => element.setAttribute('data-seen', 'yes'));
  overview.queues.push({ ...overview.queues[0]!, name: 'newcomer' });
  await panel(page, 'Queues').getByRole('link', { name: 'newcomer' }).waitFor();
  assert.equal(await throughput.locator('canvas[data-seen]').count(), 1);
});
