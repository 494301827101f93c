/** Every page in a real browser: empty, busy and broken, with hostile texts in every field, both themes, at desktop and phone width. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { pages } from '../src/pages.js';
import { noBrowser, openBrowser } from './browser.js';
import type { SceneName } from './scenes.js';
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

let browser: Browser;
let standIn: StandIn;

before(async () => {
  if (noBrowser) return;
  [browser, standIn] = await Promise.all([openBrowser(), startStandIn('busy')]);
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
      for (const path of paths) {
        await visit(page, path);
        assert.equal(await page.evaluate('window.hacked'), undefined, `${path}: a payload was rendered`);
        assert.equal(await page.locator('img[src="x"]').count(), 0, `${path}: a payload became an element`);
      }
      assert.deepEqual(complaints, []);
      await page.context().close();
    },
  );
}

test('no page has a serious finding of axe, in either theme', { skip: noBrowser }, async () => {
  standIn.scene = 'busy';
  for (const theme of ['light', 'dark'] as const) {
    const { page } = await open({ width: 1_440, height: 900 }, theme);
    for (const path of paths) {
      await visit(page, path);
      assert.deepEqual(await findings(page), [], `${path}, ${theme}`);
    }
    await page.context().close();
  }
});

test('no page is wider than a phone', { skip: noBrowser }, async () => {
  for (const scene of ['busy', 'empty'] as const) {
    standIn.scene = scene;
    const { page } = await open({ width: 360, height: 800 }, 'dark');
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
): Promise<{ page: Page; complaints: string[] }> {
  const context = await browser.newContext({
    viewport,
    colorScheme,
    reducedMotion: 'reduce',
    bypassCSP: false,
  });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
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

async function findings(page: Page): Promise<string[]> {
  // Through the debugger, which no policy of the page concerns.
  await page.evaluate(axe);
  const result = (await page.evaluate('axe.run()')) as AxeResult;
  return result.violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes[0]?.target.join(' ')} ${nodes[0]?.failureSummary}`);
}
