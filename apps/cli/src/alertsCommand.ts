// `sluice alerts`: thresholds, what is measured, and which of them are crossed.
import type { Api } from './api.js';
import { declare, type SluiceCommand } from './command.js';
import { ago, count, duration, percent } from './human.js';
import { all } from './queueCommands.js';
import type { AlertRow } from './replies.js';
import type { Column } from './table.js';

const columns: Column<AlertRow>[] = [
  { title: 'ALERT', value: ({ name }) => name },
  {
    title: 'STATE',
    value: ({ state }) => state,
    style: ({ state }) =>
      ({ ok: 'green', pending: 'yellow', raised: 'red', clearing: 'yellow' })[state] as 'green',
  },
  { title: 'NOW', value: ({ value, unit }) => figure(value, unit), align: 'right' },
  { title: 'KEEP', value: ({ keep, limit, unit }) => `${keep} ${figure(limit, unit)}` },
  {
    title: 'SINCE',
    value: ({ since }) => (since === null ? '–' : ago(Date.parse(since))),
    align: 'right',
    spare: true,
  },
  { title: 'ABOUT', value: ({ about }) => about, cut: true, spare: true },
];

export function alertsCommand(program: SluiceCommand): void {
  declare(program, 'alerts', 'Thresholds, what is measured, and which of them are crossed.')
    .example('alerts', 'a table')
    .example(`alerts --json | jq -r 'select(.state == "raised").name'`, 'those that are raised')
    .runs(async ({ api, show }) => show(columns, all(await readAlerts(api))));
}

export async function readAlerts(api: Api): Promise<AlertRow[]> {
  return (await api.get<{ items: AlertRow[] }>('/v1/alerts')).items;
}

/** Those that are crossed, each as a sentence. */
export function crossedOf(alerts: readonly AlertRow[]): string[] {
  return alerts.filter(({ met, state }) => met === false || state === 'raised').map(missedText);
}

type Missed = Pick<AlertRow, 'name' | 'value' | 'keep' | 'limit' | 'unit'>;

export function missedText({ name, value, keep, limit, unit }: Missed): string {
  return `${name} is ${figure(value, unit)}, should be ${keep} ${figure(limit, unit)}`;
}

function figure(value: number | null, unit: AlertRow['unit']): string {
  if (unit === 'share') return percent(value);
  return unit === 'seconds' ? duration(value === null ? null : value * 1_000) : count(value);
}
