/**
 * Makes the picture of the overview that the README shows: `npm run screenshot [-- --seconds 60]`.
 *
 * It is a picture of the real thing: a server of its own in a folder that goes away, the work of `npm run demo` for some minutes, so that the
 * charts have something to show, then the page as Chromium draws it, down to the end of a panel. What
 * stands in it differs from run to run. A picture that is too heavy for a README is refused.
 */
import { once } from 'node:events';
import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { spawnOwned, startBrowser, startSluice } from '@sluice/testbed';

const file = fileURLToPath(new URL('../../../../docs/images/overview.png', import.meta.url));
const demo = fileURLToPath(new URL('../../../../demo/dist/src/main.js', import.meta.url));
const usualSeconds = 420;
const size = { width: 1_440, height: 1_200 };
/** Sharp on every screen, and light enough. */
const deviceScaleFactor = 1.75;
/** Where the picture ends: below this panel, so that no row is cut through. */
const last = 'Retry queues';
const margin = 16;
const heaviest = 400 * 1_024;

const asked = process.argv.indexOf('--seconds');
const seconds = asked === -1 ? usualSeconds : Number(process.argv[asked + 1]);

const server = await startSluice();
const work = spawnOwned(process.execPath, [demo], {
  env: { ...process.env, SLUICE_DATA_DIR: server.folder, SLUICE_URL: server.url },
  stdio: ['ignore', 'ignore', 'inherit'],
});
console.error(`work goes on for ${seconds} seconds at ${server.url}`);
await sleep(seconds * 1_000);
const browser = await startBrowser();
const page = await browser.newPage({ viewport: size, deviceScaleFactor, colorScheme: 'dark' });
await page.goto(server.url);
await page.getByText('live', { exact: true }).waitFor();
await page.locator('.uplot').nth(2).waitFor();
// The first figures per second need two looks at the counters.
await page.getByText('measuring').first().waitFor({ state: 'detached' });
mkdirSync(dirname(file), { recursive: true });
const { y, height } = (await page.getByRole('region', { name: last, exact: true }).boundingBox())!;
const clip = { x: 0, y: 0, width: size.width, height: Math.min(size.height, Math.ceil(y + height) + margin) };
await page.screenshot({ path: file, clip });
await browser.close();
// The work ends before its server does: it has jobs to give back.
const ended = once(work, 'close');
work.kill('SIGINT');
await ended;
await server.stop();
const bytes = statSync(file).size;
console.error(`${file}: ${Math.round(bytes / 1_024)} KiB`);
if (bytes > heaviest) {
  console.error(`more than ${heaviest / 1_024} KiB are too many for a README`);
  process.exitCode = 1;
}
