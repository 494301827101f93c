/**
 * A real browser for tests of pages: the system's Chromium without a window, driven by playwright-core, which brings no browser of its own.
 *
 * It talks to us over a pipe and ends when that closes, so it cannot outlive the test process, however that ends. As root Chromium runs
 * only without its sandbox; the pages are our own.
 */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { Browser } from 'playwright-core';

export type { Browser } from 'playwright-core';

/** As in `scripts/prepare.mjs`, which installs the first. */
const PROGRAMS = ['chromium', 'chromium-browser', 'google-chrome'];
/** A first start on a busy machine reads a few hundred megabytes. */
const START_TIMEOUT_MS = 120_000;

/** Why there is no browser to start, in words for `t.skip`; nothing if there is one. */
export function chromiumProblem(): string | undefined {
  return chromiumFile() === undefined ? 'no Chromium on the PATH; install it and run npm test' : undefined;
}

export async function startBrowser(args: string[] = []): Promise<Browser> {
  const executablePath = chromiumFile();
  if (executablePath === undefined) throw new Error(chromiumProblem());
  // It takes most of a second to load, which the many tests without a browser need not wait for.
  const { chromium } = await import('playwright-core');
  const sandbox = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  return chromium.launch({
    executablePath,
    timeout: START_TIMEOUT_MS,
    // Containers have little shared memory.
    args: [...sandbox, '--disable-dev-shm-usage', ...args],
  });
}

function chromiumFile(): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return PROGRAMS.flatMap((program) => folders.map((folder) => join(folder, program))).find((file) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
