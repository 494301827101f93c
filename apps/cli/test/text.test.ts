/** What is printed: safe, aligned, cut to the width, in units that people read; and what is read from a command line. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { colourOf } from '../src/colour.js';
import { ago, bytes, count, counted, duration, percent } from '../src/human.js';
import { attentionText } from '../src/overview.js';
import { parseBytes, parseMoment, parseRate, parseSpan } from '../src/parse.js';
import { safeBlock, safeJson, safeLine } from '../src/sanitise.js';
import { renderTable, type Column } from '../src/table.js';
import { cutText, textWidth, wrapText } from '../src/textWidth.js';

const plain = colourOf(false);

test('control characters of strangers are written out, never sent to the terminal', () => {
  const evil = 'a\x1b]0;title\x07b\x1b[2Jc\u009b31md\u202ee\rf\x00g';
  const [line, block, json] = [
    safeLine(`${evil}\nh\ti`),
    safeBlock(`${evil}\nh\ti`),
    safeJson(JSON.stringify(evil)),
  ];
  for (const text of [line, block, json]) assert.doesNotMatch(text, /(?![\n\t])[\p{Cc}\p{Bidi_Control}]/u);
  assert.equal(line, 'a\\x1b]0;title\\x07b\\x1b[2Jc\\x9b31md\\u202ee\\x0df\\x00g\\nh\\ti');
  assert.ok(block.includes('\nh\ti'));
  assert.equal(JSON.parse(json), evil, 'JSON is still the same JSON');
});

test('half a character is written out', () => {
  assert.equal(safeLine('a\ud800b'), 'a\\ud800b');
  assert.equal(safeLine('ok 👍 né 漢'), 'ok 👍 né 漢');
});

test('the width of a text counts columns, not letters', () => {
  assert.equal(textWidth('abc'), 3);
  assert.equal(textWidth('漢字'), 4);
  assert.equal(textWidth('👍'), 2);
  assert.equal(textWidth('e\u0301'), 1);
  assert.equal(cutText('漢字漢字', 5), '漢字…');
  assert.equal(cutText('abc', 3), 'abc');
});

test('a sentence is broken between words, and a word that is too long stays whole', () => {
  assert.deepEqual(wrapText('no answer from http://127.0.0.1:7420 at all', 12), [
    'no answer',
    'from',
    'http://127.0.0.1:7420',
    'at all',
  ]);
  assert.deepEqual(wrapText('short', 80), ['short']);
});

interface Row {
  name: string;
  size: number;
  note: string;
}
const columns: Column<Row>[] = [
  { title: 'NAME', value: ({ name }) => name, cut: true },
  { title: 'SIZE', value: ({ size }) => size, align: 'right' },
  { title: 'NOTE', value: ({ note }) => note, spare: true },
];
const rows: Row[] = [
  { name: 'short', size: 5, note: 'first' },
  { name: 'a name that is long enough to be cut', size: 12_345, note: '\x1b[31mred' },
];

test('columns line up, figures to the right', () => {
  const lines = renderTable(columns, rows, { colour: plain, width: undefined });
  assert.deepEqual(lines, [
    'NAME                                   SIZE  NOTE',
    'short                                     5  first',
    'a name that is long enough to be cut  12345  \\x1b[31mred',
  ]);
});

test('a table fits its terminal: first it cuts, then it leaves out', () => {
  for (const width of [50, 40, 30, 20, 16]) {
    const lines = renderTable(columns, rows, { colour: plain, width });
    for (const line of lines) assert.ok(textWidth(line) <= width, `${width}: ${line}`);
    assert.ok(lines[0]!.includes('SIZE'));
  }
  assert.ok(renderTable(columns, rows, { colour: plain, width: 40 })[0]!.includes('NOTE'));
  assert.ok(!renderTable(columns, rows, { colour: plain, width: 18 })[0]!.includes('NOTE'));
});

test('nothing is shown as a dash, and a style does not disturb the columns', () => {
  const colour = colourOf(true);
  const lines = renderTable<{ a: string | undefined }>(
    [
      { title: 'A', value: ({ a }) => a, style: () => 'red' },
      { title: 'B', value: () => 'x' },
    ],
    [{ a: undefined }, { a: 'long' }],
    { colour, width: undefined },
  );
  assert.ok(lines[1]!.includes('–'));
  assert.equal(lines[1]!.indexOf('x'), lines[2]!.indexOf('x'));
});

test('spans, bytes and counts are for people', () => {
  assert.equal(duration(150_000), '2 min 30 s');
  assert.equal(duration(59_900), '1 min');
  assert.equal(duration(450), '450 ms');
  assert.equal(duration(1_500), '1.5 s');
  assert.equal(duration(2 * 86_400_000 + 4 * 3_600_000), '2 d 4 h');
  assert.equal(duration(undefined), '–');
  assert.equal(ago(1_000, 61_000), '1 min ago');
  assert.equal(ago(61_000, 1_000), 'in 1 min');
  assert.equal(bytes(1_536), '1.5 KiB');
  assert.equal(bytes(0), '0 B');
  assert.equal(bytes(10.684), '11 B');
  assert.equal(count(1_234_567), '1,234,567');
  assert.equal(count(0.25), '0.3');
  assert.equal(counted(1, 'job'), '1 job');
  assert.equal(percent(0.955), '95.5 %');
});

test('spans, moments, bytes and rates are read as people write them', () => {
  assert.equal(parseSpan('1h30m'), 5_400_000);
  assert.equal(parseSpan('500ms'), 500);
  assert.equal(parseBytes('8M'), 8_388_608);
  assert.equal(parseBytes('1.5k'), 1_536);
  assert.deepEqual(parseRate('100/1m'), { max: 100, perMs: 60_000 });
  assert.deepEqual(parseRate('5/s'), { max: 5, perMs: 1_000 });
  assert.equal(parseMoment('2026-03-01T00:00:00Z'), Date.UTC(2026, 2, 1));
  assert.ok(Math.abs(Date.now() - 7_200_000 - parseMoment('2h')) < 60_000);
  for (const nonsense of ['5', '5 parsecs', '-3s', '', '1h garbage'])
    assert.throws(() => parseSpan(nonsense), { code: 'USAGE' }, nonsense);
});

test('what needs attention is a line each, a missed target in the units of its figure', () => {
  assert.equal(
    attentionText({ code: 'NO_WORKERS', message: 'nobody works', queue: 'mail' }),
    'mail: nobody works',
  );
  const target = {
    ...{ name: 'oldestDeadLetter', about: '', link: '/dead', value: 400_000, limit: 86_400 },
    ...({ keep: 'below', unit: 'seconds' } as const),
  };
  assert.equal(
    attentionText({ code: 'ALERT_RAISED', message: 'oldestDeadLetter is 400,000 seconds', target }),
    'oldestDeadLetter is 4 d 15 h, should be below 1 d',
  );
});
