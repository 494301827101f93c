// `sluice audit`: who changed what, when, and what came of it.
import { declare, listOptions, wishOf, type ListOptions, type SluiceCommand } from './command.js';
import { moment } from './human.js';
import { readable, type Column } from './table.js';

interface AuditRow {
  id: string;
  at: string;
  endedAt: string | null;
  tenant: string | null;
  actor: string;
  actorName: string;
  via: string;
  address: string;
  action: string;
  target: string;
  /** Null while it is under way, or when nobody knows what came of it. */
  outcome: 'done' | 'refused' | 'failed' | null;
  status: number | null;
  details: Record<string, unknown>;
}

const columns: Column<AuditRow>[] = [
  { title: 'WHEN', value: ({ at }) => moment(at) },
  { title: 'WHO', value: ({ actorName, actor }) => actorName || actor, cut: true },
  { title: 'FROM', value: ({ address }) => address, spare: true },
  { title: 'TENANT', value: ({ tenant }) => tenant ?? '*', spare: true },
  { title: 'DID', value: ({ action }) => action },
  {
    title: 'OUTCOME',
    value: ({ outcome }) => outcome ?? 'unknown',
    style: ({ outcome }) => (outcome === 'done' ? 'green' : 'yellow'),
  },
  { title: 'TO', value: ({ target, details }) => `${target} ${detailText(details)}`.trim(), cut: readable },
];

interface AuditFlags extends ListOptions {
  action?: string;
  actor?: string;
  of?: string;
}

export function auditCommand(program: SluiceCommand): void {
  const audit = declare(program, 'audit', 'Who changed what, when, and what came of it.')
    .example('audit', 'the latest changes')
    .example('audit --action queue.pause --all', 'every pause')
    .example('audit --actor 7f3a --json | jq .', 'of one key, for a program')
    .option('--action <action>', 'only these: queue.pause, key.create, …')
    .option('--actor <id>', 'only what this key did')
    .option('--of <tenant>', 'only what concerned this tenant');
  listOptions(audit).runs(({ api, show }, flags: AuditFlags) => {
    const { action, actor, of: tenant } = flags;
    const names = { cursor: 'after', largestPage: 1_000 };
    return show(columns, api.list<AuditRow>('/v1/audit', { action, actor, tenant }, wishOf(flags), names));
  });
}

function detailText(details: Record<string, unknown> = {}): string {
  const pairs = Object.entries(details).map(([name, value]) => `${name}=${String(value as string | number)}`);
  return pairs.join(' ');
}
