/** Debian's chromium, as the tests drive it. */
import { existsSync } from 'node:fs';
import { chromium, type Browser } from 'playwright-core';

const places = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

export function browserProgram(): string | undefined {
  return places.find((place) => existsSync(place));
}

/** Why the tests in a browser cannot run; false if they can. */
export const noBrowser = browserProgram() === undefined ? 'there is no chromium on this machine' : false;

export function openBrowser(): Promise<Browser> {
  const executablePath = browserProgram();
  if (executablePath === undefined) throw new Error('there is no chromium on this machine');
  // As root, in containers, chromium cannot set up its sandbox; the pages are our own.
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
}
