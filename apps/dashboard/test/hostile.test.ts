/**
 * Hostile texts in every field that an answer has: whatever a producer, an uploader or a handler writes is shown as text, throws nothing and
 * moves nothing. Lists get a row for each text, twice: once in every field, and once with the words that the page knows left as they are, so
 * that every branch of a row is drawn.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { brief, isDeeperThan, pretty } from '../src/parts/json.js';
import { placeOf } from '../src/targets.js';
import { hostile, jobOf } from './scenes.js';
import { useStage } from './stage.js';
import { complaintsOf, paths, tooWide, walk } from './visit.js';

const stage = useStage();

const turned = '\u202Egpj.exe\u2066\u200F';
const texts = [
  `${hostile}"'><svg onload=window.hacked=1>${turned} \u0000\u0007\u001B[31m ${'W'.repeat(3_000)}`,
  'javascript:window.hacked=1',
  '__proto__',
  '',
];

/** Words of the server that a row is drawn by, and moments. */
const words =
  /^(role|via|type|kind|status|state|unit|keep|outcome|drain|policy|code|what|missed|cron|at|since|link|cursor|step|\w+At)$/;
/** No list of things: figures over time. */
const untouched = ['points', 'perHour', 'byPriority', 'missing'];
/** Their names are the users' own, too. */
const free = ['labels', 'details', 'data'];

function twisted(value: unknown, text: string, keepWords: boolean, name = ''): unknown {
  if (untouched.includes(name)) return value;
  if (typeof value === 'string') return keepWords && words.test(name) ? value : text;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return twistedList(value, text, keepWords);
  const fields = Object.entries(value).map(([key, of]) => [key, twisted(of, text, keepWords, key)]);
  if (free.includes(name)) fields.push([text, text], ['odd', { toString: 1, valueOf: text }]);
  return Object.fromEntries(fields) as unknown;
}

function twistedList(list: unknown[], text: string, keepWords: boolean): unknown[] {
  if (list.every((item) => typeof item === 'string')) return list.map(() => text);
  if (list.length === 0) return list;
  return texts.flatMap((each, i) => [
    twisted(list[(2 * i) % list.length], each, true),
    twisted(list[(2 * i + 1) % list.length], each, keepWords && i % 2 === 0),
  ]);
}

/** Everything that would tell that a text was taken for more than text. */
async function assertHarmless(page: Page, where: string): Promise<void> {
  assert.equal(await page.evaluate('window.hacked'), undefined, `${where}: a text was run`);
  const taken = page.locator(
    'main img[src="x"], main svg[onload], body script, [onerror], [onload], a[href^="javascript:" i], a[href^="//"]',
  );
  assert.equal(await taken.count(), 0, `${where}: a text became an element`);
  assert.equal(await page.getByText('could not be drawn').count(), 0, `${where}: something was not drawn`);
}

/** On a phone and on a screen. */
async function widthsOf(page: Page, where: string): Promise<string[]> {
  const found: string[] = [];
  for (const width of [320, 1_440]) {
    await page.setViewportSize({ width, height: 900 });
    const over = await tooWide(page);
    if (over !== null) found.push(`${where} at ${width}: ${over}`);
  }
  return found;
}

test('hostile texts in every field of every answer stay texts, and move nothing', stage.needs, async () => {
  let [text, keepWords] = [texts[0]!, true];
  stage.standIn.twist = (value) => twisted(value, text, keepWords);
  const page = await stage.open('/');
  const complaints = complaintsOf(page);
  const wide: string[] = [];
  for (const path of paths) {
    await walk(page, path);
    await assertHarmless(page, path);
    wide.push(...(await widthsOf(page, path)));
  }
  assert.deepEqual(wide, []);
  // Pages of one thing have no rows for the other texts.
  for (text of texts.slice(1))
    for (keepWords of [true, false])
      for (const path of ['/queues/document', '/jobs/document/17', '/files', '/trace']) {
        await walk(page, path);
        await assertHarmless(page, `${path} with “${text}”`);
      }
  assert.deepEqual(complaints, []);
});

test('hostile texts stay texts in dialogs, in messages and in the search', stage.needs, async () => {
  stage.standIn.twist = (value) => twisted(value, texts[0]!, true);
  const page = await stage.open('/settings');
  const complaints = complaintsOf(page);
  const dialog = page.getByRole('dialog');
  const lookAndClose = async (where: string): Promise<void> => {
    await dialog.waitFor();
    while ((await page.locator('dialog .wait').count()) > 0) await page.waitForTimeout(20);
    await assertHarmless(page, where);
    await page.setViewportSize({ width: 320, height: 800 });
    const wider = (await page.evaluate(
      `(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('dialog'))`,
    )) as number;
    assert.equal(wider, 0, `${where} is too wide`);
    await page.setViewportSize({ width: 1_440, height: 900 });
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
  };
  await page.getByRole('button', { name: 'Deliveries to' }).first().click();
  await lookAndClose('deliveries');
  await page.getByRole('button', { name: 'Revoke' }).first().click();
  await lookAndClose('a question');
  await walk(page, '/dead');
  await page.getByRole('button', { name: 'Replay all matching' }).click();
  await lookAndClose('a dry run');
  await walk(page, '/uploads');
  await page.getByRole('button', { name: 'Cancel' }).first().click();
  await dialog.getByRole('button', { name: 'Cancel it' }).click();
  await page.locator('.toast').waitFor();
  await page.getByRole('combobox', { name: 'Find' }).fill('img src');
  await page.getByRole('option').nth(1).waitFor();
  await assertHarmless(page, 'messages');
  assert.deepEqual(await widthsOf(page, 'messages'), []);
  assert.deepEqual(complaints, []);
});

const nested = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels));

test('whatever a handler writes as progress, payload or result is drawn', stage.needs, async () => {
  const written: unknown[] = [
    hostile,
    { percent: hostile, [hostile]: turned, __proto__: null },
    JSON.parse('{"__proto__": {"hacked": 1}, "constructor": 1, "toString": 1, "valueOf": 2}'),
    nested(3_000),
    1e308,
    -5,
    100.5,
    true,
    [],
    '',
    'W'.repeat(200_000),
  ];
  const page = await stage.open('/redis');
  const complaints = complaintsOf(page);
  for (const [i, value] of written.entries()) {
    stage.standIn.otherwise = (_method, { pathname }) =>
      pathname === `/v1/queues/document/jobs/${i}`
        ? [200, { ...jobOf('document', `${i}`, Date.now()), progress: value, data: value, result: value }]
        : undefined;
    await page.evaluate(`history.pushState(null, '', '/jobs/document/${i}');
      dispatchEvent(new PopStateEvent('popstate'))`);
    await page.getByRole('heading', { name: 'Payload' }).waitFor();
    await page.getByRole('heading', { name: `${i}`, exact: true, level: 1 }).waitFor();
    await assertHarmless(page, `progress ${i}`);
    assert.deepEqual(await widthsOf(page, `progress ${i}`), []);
    // What is no share of the whole is shown as it is, and not as a bar.
    assert.equal(await page.getByRole('progressbar').count(), 0, `progress ${i}`);
    if (typeof value !== 'object') continue;
    await page.getByRole('button', { name: 'Edit and replay' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Replay as it was' }).waitFor();
    await page.keyboard.press('Escape');
  }
  assert.deepEqual(complaints, []);
});

test('a part that cannot be drawn leaves the others in their places', stage.needs, async () => {
  stage.standIn.otherwise = (_method, { pathname }) =>
    pathname === '/v1/alerts' ? [200, { items: [null] }] : undefined;
  const page = await stage.open('/');
  await page.getByText('The panel “targets” could not be drawn').waitFor();
  await page.getByRole('heading', { name: 'Needs attention' }).waitFor();
  await page.getByRole('heading', { name: 'Queues', exact: true, level: 2 }).waitFor();
  stage.standIn.otherwise = undefined;
  stage.standIn.twist = (value) =>
    value !== null && typeof value === 'object' && 'scanned' in value ? { items: [null], next: null } : value;
  await page.getByRole('link', { name: /^Workers/ }).click();
  await page.getByText('This page could not be drawn').waitFor();
  await page.getByRole('link', { name: 'Redis', exact: true }).click();
  await page.getByRole('heading', { name: 'Redis', level: 1 }).waitFor();
});

test('a name in the address brings nothing into a command that somebody pastes', stage.needs, async () => {
  stage.standIn.scene = 'empty';
  const queue = encodeURIComponent(`x'; reboot $(id) \`id\` | sh #`);
  const page = await stage.open(`/jobs?queue=${queue}`);
  for (const path of [`/jobs?queue=${queue}`, `/queues/${queue}`]) {
    await page.goto(stage.standIn.url + path);
    const command = await page.locator('.command code').innerText();
    assert.match(
      command,
      /^curl -H "X-Sluice-Key: \$KEY" -X POST http:\/\/[\d.:]+\/v1\/queues\/[\w%.-]+\/jobs -H '[^']+' -d '[^']+'$/,
    );
  }
});

test('data are written out as JSON that means the same, whatever is in them', () => {
  const odd = { name: turned, list: [1, { deep: null }], '\u202E': '\u0000' };
  assert.deepEqual(JSON.parse(pretty(odd)), odd);
  assert.doesNotMatch(pretty(odd), /[\u200e-\u202e\u2066-\u2069]/);
  assert.equal(isDeeperThan(nested(42), 40), true);
  assert.equal(isDeeperThan(nested(41), 40), false);
  // Two blanks for each level of each line would be a hundred megabytes.
  assert.ok(pretty(nested(5_000)).length < 20_000);
  assert.equal(brief('x'.repeat(9_000)).length, 301);
  assert.equal(placeOf('https://sluice.example//evil.example/x'), '/evil.example/x');
  assert.equal(placeOf('javascript:alert(1)'), undefined);
});
