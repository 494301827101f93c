/// <reference lib="dom" />
/*
 * One visit of the overview by a browser that has nothing in its cache: when it first painted anything, when the figures stood on the page,
 * and what it had to load for that.
 */
import type { Browser } from '@sluice/testbed';

export interface Visit {
  firstPaintMs: number;
  /** The frame with the key figures is on the screen. */
  figuresMs: number;
  /** Of the whole page: what is not needed for the figures (the charts) comes after them. */
  scriptBytes: number;
  /** Needed for the figures. */
  otherBytes: number;
  requests: number;
}

const PATIENCE_MS = 60_000;
const FIRST_POINT_MS = 180_000;
/** Scripts that the page loads later have come by then. */
const LATER_MS = 1_500;
const WIDE = { width: 1_440, height: 900 };

export async function visit(browser: Browser, url: string, waitingShown: string): Promise<Visit> {
  const context = await browser.newContext({ viewport: WIDE });
  try {
    const page = await context.newPage();
    await page.addInitScript(watchForFigures, waitingShown);
    await page.goto(url);
    await page.waitForFunction(readVisit, undefined, { timeout: PATIENCE_MS });
    await page.waitForTimeout(LATER_MS);
    return (await page.evaluate(readVisit)) as Visit;
  } finally {
    await context.close();
  }
}

/** A server that was just started has nothing to draw: its first point comes with the first minute that is over. */
export async function untilChartsAreDrawn(browser: Browser, url: string): Promise<void> {
  const context = await browser.newContext({ viewport: WIDE });
  try {
    const page = await context.newPage();
    await page.goto(url);
    await page.waitForSelector('.chart canvas', { timeout: FIRST_POINT_MS });
  } finally {
    await context.close();
  }
}

/** Runs in the page, before its own scripts. */
function watchForFigures(waitingShown: string): void {
  const observer = new MutationObserver(() => {
    const figures = document.querySelector('[aria-label="Key figures"]');
    if (!figures?.textContent?.includes(waitingShown)) return;
    observer.disconnect();
    // The callback runs before the frame is drawn; the one after it begins when that frame is done.
    requestAnimationFrame(() => requestAnimationFrame(() => performance.mark('figures')));
  });
  observer.observe(document, { subtree: true, childList: true, characterData: true });
}

/** Runs in the page, again and again until there is an answer. */
function readVisit(): unknown {
  const figuresMs = performance.getEntriesByName('figures')[0]?.startTime;
  const firstPaintMs = performance.getEntriesByName('first-contentful-paint')[0]?.startTime;
  if (figuresMs === undefined || firstPaintMs === undefined) return undefined;
  const loaded = [
    ...performance.getEntriesByType('navigation'),
    ...performance.getEntriesByType('resource'),
  ] as PerformanceResourceTiming[];
  const before = loaded.filter(({ responseEnd }) => responseEnd > 0 && responseEnd <= figuresMs);
  const isScript = ({ name }: PerformanceResourceTiming): boolean => new URL(name).pathname.endsWith('.js');
  const bytes = (entries: PerformanceResourceTiming[]): number =>
    entries.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0);
  return {
    firstPaintMs,
    figuresMs,
    scriptBytes: bytes(loaded.filter(isScript)),
    otherBytes: bytes(before.filter((entry) => !isScript(entry))),
    requests: before.length,
  };
}
