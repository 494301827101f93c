/** Every page in a real browser: empty, busy and broken, with hostile texts in every field, both themes, at desktop and phone width. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { chromiumProblem, startBrowser, type Browser } from '@sluice/testbed';
import type { Page } from 'playwright-core';
import { compact } from '../src/format.js';
import { overviewOf, type SceneName } from './scenes.js';
import { startStandIn, type StandIn } from './standIn.js';
import { complaintsOf, findings, paths, tooWide, visit, walk } from './visit.js';

const screen = { width: 1_440, height: 900 };
const phone = { width: 390, height: 844 };
const mostRows = 3;

/** Pages that show nothing that users wrote. */
const harmless = ['/redis', '/queues/document'];
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
      const { page, complaints } = await open(screen, 'light');
      // Where there is no queue, the page of one rightly answers 404, and browsers call that an error.
      for (const path of paths.filter((name) => scene !== 'empty' || name !== '/queues/document')) {
        // Once as somebody who was sent the address; otherwise the quicker way.
        if (scene === 'busy' || path === paths[0]) await visit(page, standIn.url, path);
        else await walk(page, path);
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

for (const scene of ['busy', 'empty', 'broken'] satisfies SceneName[]) {
  test(
    `no page has a serious finding of axe, in either theme, on a screen or a phone: ${scene}`,
    { skip: noBrowser },
    async () => {
      const own = await startStandIn(scene);
      // What axe looks at grows with the rows, and a row is like the next.
      own.twist = fewRows;
      const { page } = await open(screen, 'light');
      await page.goto(own.url);
      const found: string[] = [];
      for (const path of paths) {
        await walk(page, path);
        for (const viewport of [screen, phone]) {
          await page.setViewportSize(viewport);
          for (const theme of ['light', 'dark'] as const) {
            await page.emulateMedia({ colorScheme: theme });
            // Themes differ in colours only; what a phone leaves out or stands otherwise is there in the busy one.
            const isWhole = theme === 'light' && (viewport === screen || scene === 'busy');
            const rules = isWhole ? 'all' : 'colours';
            const where = `${path}, ${scene}, ${theme}, ${viewport.width}`;
            found.push(...(await findings(page, rules)).map((finding) => `${where}: ${finding}`));
          }
        }
      }
      await page.context().close();
      await own.close();
      assert.deepEqual(found, []);
    },
  );
}

test(
  'the door and dialogs have no serious finding of axe, in either theme',
  { skip: noBrowser },
  async () => {
    standIn.scene = 'busy';
    const { page } = await open(screen, 'light');
    const found: string[] = [];
    const look = async (what: string): Promise<void> => {
      for (const theme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme: theme });
        const rules = theme === 'light' ? 'all' : 'colours';
        found.push(...(await findings(page, rules)).map((finding) => `${what}, ${theme}: ${finding}`));
      }
    };
    await visit(page, standIn.url, '/dead');
    await page.getByRole('button', { name: 'Replay all matching' }).click();
    await page.getByRole('dialog').getByText('will run again').waitFor();
    await look('dialog');
    standIn.signedIn = false;
    await page.goto(standIn.url);
    await page.getByRole('heading', { name: 'Sign in to Sluice' }).waitFor();
    await look('sign-in');
    standIn.signedIn = true;
    await page.context().close();
    assert.deepEqual(found, []);
  },
);

test('nothing moves for whoever asked for less motion', { skip: noBrowser }, async () => {
  standIn.scene = 'busy';
  const longest = async (reducedMotion: 'reduce' | 'no-preference'): Promise<number> => {
    const { page } = await open(screen, 'light', reducedMotion);
    await visit(page, standIn.url, '/');
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
  await visit(page, standIn.url, '/');
  await page.locator('.chart canvas').first().waitFor();
  await page.evaluate(`window.shifted = 0;
    new PerformanceObserver((list) => {
      for (const { value } of list.getEntries()) window.shifted += value;
    }).observe({ type: 'layout-shift' });`);
  for (const waiting of [7, 98_765, 4_321_000]) {
    const overview = overviewOf('busy', Date.now());
    overview.counts.waiting = waiting;
    overview.queues[0]!.counts.waiting = waiting;
    // Each second from now on: told once only, it would be gone with the next second before a busy browser has drawn it.
    standIn.otherwise = (_method, { pathname }) =>
      pathname === '/v1/overview' ? [200, overview] : undefined;
    await page.locator('.figure').first().getByText(compact(waiting), { exact: true }).waitFor();
  }
  const shifted = (await page.evaluate('window.shifted')) as number;
  // Below 0.1 a page counts as calm; figures that change must not move anything that one is about to click.
  assert.ok(shifted < 0.01, `${shifted}`);
  standIn.otherwise = undefined;
  await page.context().close();
});

test('no page is wider than a phone', { skip: noBrowser }, async () => {
  for (const scene of ['busy', 'empty'] as const) {
    standIn.scene = scene;
    const { page } = await open({ width: 320, height: 800 }, 'dark');
    await page.goto(standIn.url);
    for (const path of paths) {
      await walk(page, path);
      assert.equal(await tooWide(page), null, `${path} (${scene})`);
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
  return { page, complaints: complaintsOf(page) };
}

/** Some rows of each list; which ones does not matter. */
function fewRows(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, mostRows).map(fewRows);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, of]) => [name, fewRows(of)]));
}
