/** How tests walk through the pages: every path of the registry with what it needs in its query, until nothing on the page is waited for. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { pages } from '../src/pages.js';

const extra: Record<string, string> = {
  '/jobs': '?queue=document',
  '/dead': '?queue=document',
  '/files': '?drive=main&file=n1',
  '/trace': '?id=17',
  '/cache': '?family=user',
};

export const paths = pages.map(({ path }) => `/${path.replace(':queue', 'document').replace(':id', '17')}`);

export function addressOf(path: string): string {
  return path + (extra[path] ?? '');
}

/** As somebody who was sent the address: everything is loaded. */
export async function visit(page: Page, url: string, path: string): Promise<void> {
  await page.goto(url + addressOf(path));
  await settled(page);
}

/** As somebody who follows a link: nothing is loaded again, which is ten times quicker. */
export async function walk(page: Page, path: string): Promise<void> {
  await page.evaluate(`history.pushState(null, '', ${JSON.stringify(addressOf(path))});
    dispatchEvent(new PopStateEvent('popstate'));
    new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)))`);
  await settled(page);
}

export async function settled(page: Page): Promise<void> {
  await page.locator('main h1').waitFor();
  await page.locator('.panel, .empty').first().waitFor();
  // The last one that is waited for goes; the policy of the page lets nobody evaluate a condition in it.
  while ((await page.locator('.wait').count()) > 0) await page.waitForTimeout(20);
}

/** Everything that the browser itself finds wrong. */
export function complaintsOf(page: Page): string[] {
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()))
      complaints.push(`${message.text()} ${message.location().url}`);
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  return complaints;
}

/** What makes a page wider than its window, and by how many pixels; null if nothing does. */
export async function tooWide(page: Page): Promise<string | null> {
  return (await page.evaluate(`(() => {
    const over = document.documentElement.scrollWidth - innerWidth;
    if (over <= 0) return null;
    const cuts = (element) => element !== document.body && (getComputedStyle(element).overflowX !== 'visible' || cuts(element.parentElement));
    const widest = [...document.body.querySelectorAll('*')]
      .filter((element) => element.getBoundingClientRect().right > innerWidth && !cuts(element.parentElement)).at(-1);
    return over + ' pixels: ' + widest?.tagName + '.' + widest?.className + ' ' + widest?.textContent.slice(0, 40);
  })()`)) as string | null;
}

interface AxeResult {
  violations: { id: string; impact: string; nodes: { target: string[]; failureSummary: string }[] }[];
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe finds serious or critical; of all rules, or of colours only. */
export async function findings(page: Page, rules: 'all' | 'colours'): Promise<string[]> {
  // Through the debugger, which no policy of the page concerns.
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axe);
  const only = rules === 'all' ? '' : `runOnly: ['color-contrast'],`;
  const result = (await page.evaluate(
    `axe.run({ ${only} resultTypes: ['violations'], preload: false })`,
  )) as AxeResult;
  return result.violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes[0]?.target.join(' ')} ${nodes[0]?.failureSummary}`);
}
