/** A browser and a stand-in for the tests of one file; each test begins with a stand-in as new, and its pages are closed behind it. */
import { after, afterEach, before, beforeEach } from 'node:test';
import { chromiumProblem, startBrowser, type Browser } from '@sluice/testbed';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { startStandIn, type StandIn } from './standIn.js';

/** The stand-in answers at once; what is not there by then does not come, however busy the machine is. */
const patienceMs = 30_000;

export interface Stage {
  /** The options of a test: why it cannot run here, if it cannot. */
  readonly needs: { skip: string | false };
  readonly standIn: StandIn;
  open: (path: string, options?: BrowserContextOptions) => Promise<Page>;
}

export function useStage(): Stage {
  const problem = chromiumProblem() ?? false;
  let browser: Browser;
  let standIn: StandIn;
  before(async () => {
    if (!problem) browser = await startBrowser();
  });
  beforeEach(async () => {
    if (!problem) standIn = await startStandIn('busy');
  });
  afterEach(async () => {
    if (problem) return;
    await Promise.all(browser.contexts().map((context) => context.close()));
    await standIn.close();
  });
  after(async () => {
    await browser?.close();
  });
  return {
    needs: { skip: problem },
    get standIn() {
      return standIn;
    },
    open: async (path, options) => {
      const context = await browser.newContext({
        viewport: { width: 1_440, height: 900 },
        reducedMotion: 'reduce',
        ...options,
      });
      context.setDefaultTimeout(patienceMs);
      const page = await context.newPage();
      await page.goto(standIn.url + path);
      return page;
    },
  };
}
