/** Every page in a real browser: empty, busy and broken, with hostile texts in every field, both themes, at desktop and phone width. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { chromiumProblem, startBrowser, type Browser } from '@sluice/testbed';
import type { Page } from 'playwright-core';
import { pages } from '../src/pages.js';
import { compact } from '../src/format.js';
import { overviewOf, type SceneName } from './scenes.js';
import { startStandIn, type StandIn } from './standIn.js';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const paths = pages.map(({ path }) => `/${path.replace(':queue', 'document').replace(':id', '17')}`);
const extra: Record<string, string> = {
  '/jobs': '?queue=document',
  '/dead': '?queue=document',
  '/files': '?drive=main&file=n1',
  '/trace': '?id=17',
  '/cache': '?family=user',
};

/** Pages that show nothing that users wrote. */
const harmless = ['/redis', '/queues/document'];
/** Where an empty or a broken installation looks otherwise than a busy one. */
const differing = ['/', '/jobs', '/dead', '/uploads'];

const noBrowser = chromiumProblem() ?? false;
let browser: Browser;
let standIn: StandIn;

before(async () => {
  if (noBrowser) return;
  [browser, standIn] = await Promise.all([startBrowser(), startStandIn('busy')]);
});

after(async () => {
  await browser?.close();
  await standIn?.close();
});

for (const scene of ['empty', 'busy', 'broken'] satisfies SceneName[]) {
  test(
    `every page shows itself without a complaint of the browser: ${scene}`,
    { skip: noBrowser },
    async () => {
      standIn.scene = scene;
      const { page, complaints } = await open({ width: 1_440, height: 900 }, 'light');
      // Where there is no queue, the page of one rightly answers 404, and browsers call that an error.
      for (const path of paths.filter((name) => scene !== 'empty' || name !== '/queues/document')) {
        await visit(page, path);
        assert.equal(await page.evaluate('window.hacked'), undefined, `${path}: a payload was rendered`);
        assert.equal(await page.locator('img[src="x"]').count(), 0, `${path}: a payload became an element`);
        if (scene === 'busy' && !harmless.includes(path))
          assert.ok(
            await page.getByText('<img src=x').filter({ visible: true }).count(),
            `${path}: a payload is not shown as text`,
          );
      }
      assert.deepEqual(complaints, []);
      await page.context().close();
    },
  );
}

test('no page has a serious finding of axe, in either theme', { skip: noBrowser }, async () => {
  standIn.scene = 'busy';
  const found: string[] = [];
  for (const theme of ['light', 'dark'] as const) {
    const { page } = await open({ width: 1_440, height: 900 }, theme);
    for (const path of paths) {
      await visit(page, path);
      found.push(...(await findings(page, theme)).map((finding) => `${path}, ${theme}: ${finding}`));
    }
    await page.context().close();
  }
  assert.deepEqual(found, []);
});

test(
  'the door, dialogs, and pages of an empty and of a broken installation have no serious finding of axe',
  { skip: noBrowser },
  async () => {
    const found: string[] = [];
    for (const theme of ['light', 'dark'] as const) {
      const { page } = await open({ width: 1_440, height: 900 }, theme);
      const look = async (what: string): Promise<void> => {
        found.push(...(await findings(page, theme)).map((finding) => `${what}, ${theme}: ${finding}`));
      };
      for (const scene of ['empty', 'broken'] as const) {
        standIn.scene = scene;
        for (const path of theme === 'light' ? differing : differing.slice(0, 1)) {
          await visit(page, path);
          await look(`${path} ${scene}`);
        }
      }
      standIn.scene = 'busy';
      await visit(page, '/dead');
      await page.getByRole('button', { name: 'Replay all matching' }).click();
      await page.getByRole('dialog').getByText('will run again').waitFor();
      await look('dialog');
      standIn.signedIn = false;
      await page.goto(standIn.url);
      await page.getByRole('heading', { name: 'Sign in to Sluice' }).waitFor();
      await look('sign-in');
      standIn.signedIn = true;
      await page.context().close();
    }
    assert.deepEqual(found, []);
  },
);

test('nothing moves for whoever asked for less motion', { skip: noBrowser }, async () => {
  standIn.scene = 'busy';
  const longest = async (reducedMotion: 'reduce' | 'no-preference'): Promise<number> => {
    const { page } = await open({ width: 1_440, height: 900 }, 'light', reducedMotion);
    await visit(page, '/');
    await page.getByRole('button', { name: 'Replay all letters of document' }).click();
    const seconds = (await page.evaluate(`Math.max(...[...document.querySelectorAll('*')].flatMap((element) =>
      [null, '::before', '::after'].flatMap((part) => {
        const { animationName, animationDuration, transitionDuration } = getComputedStyle(element, part);
        const times = transitionDuration + (animationName === 'none' ? '' : ',' + animationDuration);
        return times.split(',').map((time) => parseFloat(time) * (time.endsWith('ms') ? 0.001 : 1));
      })))`)) as number;
    await page.context().close();
    return seconds;
  };
  assert.ok((await longest('reduce')) <= 0.001);
  // Otherwise the test would say nothing.
  assert.ok((await longest('no-preference')) > 0.05);
});

test('the overview stays where it is while its figures change', { skip: noBrowser }, async () => {
  standIn.scene = 'busy';
  const { page } = await open({ width: 1_440, height: 2_400 }, 'light');
  await visit(page, '/');
  await page.locator('.chart canvas').first().waitFor();
  await page.evaluate(`window.shifted = 0;
    new PerformanceObserver((list) => {
      for (const { value } of list.getEntries()) window.shifted += value;
    }).observe({ type: 'layout-shift' });`);
  for (const waiting of [7, 98_765, 4_321_000]) {
    const overview = overviewOf('busy', Date.now());
    overview.counts.waiting = waiting;
    overview.queues[0]!.counts.waiting = waiting;
    standIn.tell('overview', overview);
    await page.locator('.figure').first().getByText(compact(waiting), { exact: true }).waitFor();
  }
  const shifted = (await page.evaluate('window.shifted')) as number;
  // Below 0.1 a page counts as calm; figures that change must not move anything that one is about to click.
  assert.ok(shifted < 0.01, `${shifted}`);
  await page.context().close();
});

test('no page is wider than a phone', { skip: noBrowser }, async () => {
  for (const scene of ['busy', 'empty'] as const) {
    standIn.scene = scene;
    const { page } = await open({ width: 320, height: 800 }, 'dark');
    for (const path of paths) {
      await visit(page, path);
      const over = (await page.evaluate('document.documentElement.scrollWidth - innerWidth')) as number;
      assert.ok(over <= 0, `${path} is ${over} pixels too wide (${scene})`);
    }
    await page.context().close();
  }
});

async function open(
  viewport: { width: number; height: number },
  colorScheme: 'light' | 'dark',
  reducedMotion: 'reduce' | 'no-preference' = 'reduce',
): Promise<{ page: Page; complaints: string[] }> {
  const context = await browser.newContext({
    viewport,
    colorScheme,
    reducedMotion,
    bypassCSP: false,
  });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()))
      complaints.push(`${message.text()} ${message.location().url}`);
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  return { page, complaints };
}

async function visit(page: Page, path: string): Promise<void> {
  await page.goto(standIn.url + path + (extra[path] ?? ''));
  await page.locator('main h1').waitFor();
  await page.locator('.panel').first().waitFor();
  // The last one that is waited for goes; the policy of the page lets nobody evaluate a condition in it.
  while ((await page.locator('.wait').count()) > 0) await page.waitForTimeout(20);
}

interface AxeResult {
  violations: { id: string; impact: string; nodes: { target: string[]; failureSummary: string }[] }[];
}

async function findings(page: Page, theme: 'light' | 'dark'): Promise<string[]> {
  // Through the debugger, which no policy of the page concerns.
  await page.evaluate(axe);
  // Themes differ in colours only.
  const rules = theme === 'light' ? '' : `{ runOnly: ['color-contrast'] }`;
  const result = (await page.evaluate(`axe.run(${rules})`)) as AxeResult;
  return result.violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes[0]?.target.join(' ')} ${nodes[0]?.failureSummary}`);
}
