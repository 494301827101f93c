/** The dashboard and the alert rules in deploy/ speak of metrics and labels that a running server really exports. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { waitUntil } from '@sluice/testbed';
import { newDataDir, startServer } from './serverProcess.js';

const file = (path: string): string =>
  readFileSync(new URL(`../../../../deploy/${path}`, import.meta.url), 'utf8');

interface Panel {
  id: number;
  type: string;
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets?: { expr: string }[];
}

interface Dashboard {
  title: string;
  panels: Panel[];
  templating: { list: { name: string; definition?: string }[] };
}

const dashboard = JSON.parse(file('grafana/sluice.json')) as Dashboard;

interface Rule {
  alert: string;
  expr: string;
  for: string;
  severity: string;
  summary: string;
  description: string;
}

/** Lines of the rules in the one form that this file has; anything else is a mistake. */
const lines: [shape: RegExp, field: keyof Rule | undefined][] = [
  [/^#/, undefined],
  [/^groups:$/, undefined],
  [/^ {2}- name: [a-z-]+$/, undefined],
  [/^ {4}rules:$/, undefined],
  [/^ {6}- alert: (\w+)$/, 'alert'],
  [/^ {8}expr: '([^']+)'$/, 'expr'],
  [/^ {8}for: (\d+[smh])$/, 'for'],
  [/^ {8}(?:labels|annotations):$/, undefined],
  [/^ {10}severity: (info|warning|critical)$/, 'severity'],
  [/^ {10}summary: '([^']+)'$/, 'summary'],
  [/^ {10}description: '([^']+)'$/, 'description'],
];

function readRules(): Rule[] {
  const rules: Partial<Rule>[] = [];
  for (const line of file('prometheus/alerts.yml').trimEnd().split('\n')) {
    const known = lines.find(([shape]) => shape.test(line));
    assert.ok(known, `not understood: ${line}`);
    const [shape, field] = known;
    if (field === 'alert') rules.push({});
    if (field) rules.at(-1)![field] = shape.exec(line)![1]!;
  }
  return rules as Rule[];
}

/** Names that stand in an expression without being metrics. */
const words = new Set([
  'by',
  'and',
  'or',
  'unless',
  'on',
  'bool',
  'offset',
  'sum',
  'max',
  'min',
  'avg',
  'count',
]);

/** Metrics of an expression, each with the labels that are asked of it. */
function metricsIn(expr: string): { name: string; labels: string[] }[] {
  const plain = expr.replace(/\[[^\]]*\]/g, '').replace(/\bby \([^)]*\)/g, '');
  return [...plain.matchAll(/([a-z_][a-z0-9_]*)\s*(\{[^}]*\})?(?!\s*\()(?![a-z0-9_])/g)]
    .filter(([, name]) => !words.has(name!) && name!.includes('_'))
    .map(([, name, labels = '']) => ({
      name: name!,
      labels: [...labels.replace(/"[^"]*"/g, '""').matchAll(/(\w+)\s*[=!]/g)].map(([, label]) => label!),
    }));
}

function checkBalance(expr: string): void {
  const open: string[] = [];
  const pairs: Record<string, string> = { ')': '(', ']': '[', '}': '{' };
  for (const sign of expr.replace(/"[^"]*"/g, '')) {
    if ('([{'.includes(sign)) open.push(sign);
    else if (sign in pairs) assert.equal(open.pop(), pairs[sign], expr);
  }
  assert.equal(open.length, 0, expr);
}

/** What Prometheus adds to every series. */
const scraped = new Set(['instance', 'job']);

test('every metric and label in the dashboard and the rules is exported by a running server', async () => {
  const server = await startServer(newDataDir(), { SLUICE_ROLES: 'queues,api,uploads,relay' });
  await fetch(`${server.url}/v1/files/main/a`, { method: 'PUT', body: 'a' });
  await fetch(`${server.url}/v1/files/main/a`);
  let text = '';
  await waitUntil(
    'the metrics are complete',
    async () => {
      text = await (await fetch(`${server.url}/metrics`)).text();
      return text.includes('sluice_queue_jobs{') && text.includes('sluice_outbox_waiting ');
    },
    { timeoutMs: 60_000 },
  );
  await server.end('SIGTERM');
  const types = new Map([...text.matchAll(/^# TYPE (\S+) (\w+)$/gm)].map(([, name, type]) => [name!, type!]));
  const labelsOf = (name: string): Set<string> => {
    const series = text.matchAll(new RegExp(`^${name}\\{([^}]*)\\} `, 'gm'));
    return new Set(
      [...series].flatMap(([, labels]) => [...labels!.matchAll(/(\w+)="/g)].map(([, each]) => each!)),
    );
  };
  const isWithoutSeries = (name: string): boolean => !new RegExp(`^${name}[ {]`, 'm').test(text);

  const expressions = [
    ...readRules().map(({ alert, expr }) => ({ where: alert, expr })),
    ...dashboard.panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ expr }) => ({ where: title, expr })),
    ),
    ...dashboard.templating.list.flatMap(({ name, definition }) =>
      definition === undefined ? [] : [{ where: name, expr: definition }],
    ),
  ];
  assert.ok(expressions.length > 40);
  for (const { where, expr } of expressions) {
    checkBalance(expr);
    const metrics = metricsIn(expr.replace(/^label_values\((\w+), \w+\)$/, '$1'));
    assert.ok(metrics.length > 0, `${where}: no metric in ${expr}`);
    const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, names]) => names!.split(/,\s*/));
    for (const { name, labels } of metrics) {
      const family = name.replace(/_(bucket|sum|count)$/, '');
      const isHistogram = family !== name && types.get(family) === 'histogram';
      assert.ok(types.has(name) || isHistogram, `${where}: nothing exports ${name}`);
      // A percentile of a minute in which nothing ran has no series to look at.
      if (isWithoutSeries(name)) continue;
      const known = labelsOf(name);
      for (const label of [...labels, ...grouped])
        assert.ok(known.has(label) || scraped.has(label), `${where}: ${name} has no label ${label}`);
      if (/\b(rate|increase)\(/.test(expr) && expr.includes(`(${name}`))
        assert.ok(types.get(name) === 'counter' || isHistogram, `${where}: ${name} does not only grow`);
    }
  }
});

test('every alert says how bad it is, what happened and what to do, once', () => {
  const rules = readRules();
  assert.ok(rules.length >= 15);
  for (const rule of rules)
    for (const field of ['alert', 'expr', 'for', 'severity', 'summary', 'description'] as const)
      assert.ok(rule[field], `${rule.alert} has no ${field}`);
  assert.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length);
});

test('the panels of the dashboard have their own ids and places, and none covers another', () => {
  const { panels } = dashboard;
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  const taken = new Map<string, string>();
  for (const { title, gridPos } of panels) {
    assert.ok(gridPos.x + gridPos.w <= 24, title);
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        assert.equal(taken.get(`${x} ${y}`), undefined, `${title} covers ${taken.get(`${x} ${y}`)}`);
        taken.set(`${x} ${y}`, title);
      }
  }
});
