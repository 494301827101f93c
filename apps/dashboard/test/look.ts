/** Makes screenshots of every page, for people to look at: `node apps/dashboard/dist/test/look.js <folder> [words]`. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { startBrowser } from '@sluice/testbed';
import type { SceneName } from './scenes.js';
import { startStandIn } from './standIn.js';

const [folder = '', ...words] = process.argv.slice(2);
const scenes: SceneName[] = ['busy', 'empty', 'broken'];
const views = [
  { name: 'desktop', width: 1_440, height: 900 },
  { name: 'phone', width: 390, height: 844 },
];
const paths = [
  '/',
  '/queues',
  '/queues/document',
  '/jobs?queue=document',
  '/jobs/document/17',
  '/retries',
  '/dead?queue=document',
  '/workers',
  '/schedules',
  '/uploads',
  '/files',
  '/events',
  '/trace?id=17',
  '/cache?family=user',
  '/redis',
  '/audit',
  '/settings',
];

mkdirSync(folder, { recursive: true });
const browser = await startBrowser();
for (const scene of scenes) {
  const standIn = await startStandIn(scene);
  for (const { name, width, height } of views) {
    for (const colorScheme of ['light', 'dark'] as const) {
      const context = await browser.newContext({
        viewport: { width, height },
        colorScheme,
        isMobile: name === 'phone',
      });
      const page = await context.newPage();
      page.on('console', (message) => message.type() === 'error' && console.error(scene, message.text()));
      page.on('pageerror', (error) => console.error(scene, error.message));
      for (const path of paths) {
        const title = `${scene}-${name}-${colorScheme}-${path.replace(/\?.*/, '').replaceAll('/', '_')}`;
        if (!words.every((word) => title.includes(word))) continue;
        await page.goto(standIn.url + path);
        await page.waitForTimeout(500);
        await page.screenshot({ path: join(folder, `${title}.png`), fullPage: true });
      }
      await context.close();
    }
  }
  await standIn.close();
}
await browser.close();
