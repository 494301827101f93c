// `sluice keys`: who may do what. A key is shown once, when it is made; the server keeps only its digest.
import { Option } from 'commander';
import { pathOf, type Api, type PageEnd } from './api.js';
import { declare, dryRunOption, group, yesOption, type SluiceCommand } from './command.js';
import type { ChangeOptions, Context } from './context.js';
import { cliErrors } from './errors.js';
import { ago, duration, moment } from './human.js';
import { parseSpan } from './parse.js';
import { safeLine } from './sanitise.js';
import type { Column } from './table.js';

interface KeyRow {
  id: string;
  name?: string;
  tenant: string;
  role: string;
  createdAt?: string;
  usedAt?: string | null;
  revokedAt?: string | null;
  expiresAt?: string | null;
}

interface MadeKey extends KeyRow {
  /** The text itself. */
  key: string;
  /** Until then the text before is good, too. */
  oldUntil?: string | null;
}

const columns: Column<KeyRow>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'NAME', value: ({ name }) => name, cut: true },
  { title: 'TENANT', value: ({ tenant }) => tenant },
  { title: 'ROLE', value: ({ role }) => role },
  {
    title: 'STATE',
    value: (row) => (hasEnded(row) ? 'ended' : 'valid'),
    style: (row) => (hasEnded(row) ? 'dim' : 'green'),
  },
  { title: 'MADE', value: ({ createdAt }) => (createdAt ? moment(createdAt) : '–'), spare: true },
  {
    title: 'USED',
    value: ({ usedAt }) => (usedAt ? ago(Date.parse(usedAt)) : 'never'),
    align: 'right',
    spare: true,
  },
  { title: 'ENDS', value: ({ expiresAt, revokedAt }) => endOf(expiresAt, revokedAt), spare: true },
];

interface CreateFlags extends ChangeOptions {
  for?: string;
  role: string;
  expires?: number;
}

export function keyCommands(program: SluiceCommand): void {
  const keys = group(program, 'keys', 'Keys: make, replace and end them.')
    .example("keys create ops --for '*' --role admin", 'the first key of an installation')
    .example('keys create ci --for acme --role operator', 'prints it once')
    .example('keys rotate 7f3a --grace 1d', 'a new text; the old one ends in a day');
  declare(keys, 'ls', 'Keys without their texts, which nobody keeps.')
    .example('keys ls', 'a table')
    .runs(async ({ api, show }) => {
      await show(columns, listKeys(api));
    });
  declare(keys, 'create', 'Make a key. Its text is printed once and kept by nobody.')
    .argument('<name>', 'what it is for')
    .example('keys create ci --for acme --role operator', 'for one tenant')
    .example("keys create ops --for '*' --role admin > key.txt", 'for the whole installation')
    .option('--for <tenant>', "whose key it is; '*' is the whole installation; your own tenant unless stated")
    .addOption(
      new Option('--role <role>', 'what it may do')
        .choices(['viewer', 'operator', 'admin'])
        .default('viewer'),
    )
    .option('--expires <span>', 'ends by itself: 90d', parseSpan)
    .option(...dryRunOption)
    .runs(async ({ api, out }, flags: CreateFlags, name: string) => {
      const body = {
        name,
        role: flags.role,
        ...(flags.for !== undefined && { tenant: flags.for }),
        ...(flags.expires !== undefined && { expiresInS: Math.round(flags.expires / 1_000) }),
      };
      const whose = flags.for === '*' ? 'the whole installation' : (flags.for ?? 'your own tenant');
      if (flags.dryRun) return out.would(body, `${name}: would be ${flags.role} of ${whose}`);
      printKey(out, await api.post<MadeKey>('/v1/keys', body));
    });
  declare(keys, 'rotate', 'Give a key a new text; the old one is valid for a while longer.')
    .argument('<id>')
    .example('keys rotate 7f3a --grace 1h', 'an hour to change it everywhere')
    .option('--grace <span>', 'how long the old text stays valid', parseSpan)
    .option(...dryRunOption)
    .option(...yesOption)
    .runs(async ({ api, out, confirm }, flags: { grace?: number } & ChangeOptions, id: string) => {
      const { grace } = flags;
      const until = grace === undefined ? '' : `; the old text ends in ${duration(grace)}`;
      if (flags.dryRun) {
        const { name } = await needKey(api, id);
        return out.would({ id, name }, `${id} (${name}): would get a new text${until}`);
      }
      await confirm(`Give the key ${id} a new text${until}?`);
      const body = grace === undefined ? {} : { graceS: Math.round(grace / 1_000) };
      printKey(out, await api.post<MadeKey>(pathOf`/v1/keys/${id}/rotate`, body));
    });
  declare(keys, 'rm', 'End a key at once, with everything that was made with it.')
    .argument('<id>')
    .example('keys rm 7f3a --yes', 'without being asked')
    .option(...dryRunOption)
    .option(...yesOption)
    .runs(async ({ api, out, confirm }, { dryRun }: ChangeOptions, id: string) => {
      if (dryRun) {
        const { name } = await needKey(api, id);
        return out.would({ id, name }, `${id} (${name}): would end`);
      }
      await confirm(`End the key ${id}? Whoever uses it is refused from then on.`);
      await api.ask('DELETE', pathOf`/v1/keys/${id}`);
      out.did({ id, removed: true }, `${id}: ended`);
    });
}

function listKeys(api: Api): AsyncGenerator<KeyRow, PageEnd> {
  return api.list<KeyRow>('/v1/keys', {}, { limit: 0, all: true });
}

/** One that is there and has not ended. */
async function needKey(api: Api, id: string): Promise<KeyRow> {
  for await (const key of listKeys(api)) if (key.id === id && !hasEnded(key)) return key;
  throw cliErrors.NONE({ what: `there is no key ${id} that is still valid` });
}

function hasEnded({ revokedAt, expiresAt }: KeyRow): boolean {
  return !!revokedAt || (!!expiresAt && Date.parse(expiresAt) <= Date.now());
}

function endOf(expiresAt: string | null | undefined, revokedAt: string | null | undefined): string {
  const at = revokedAt ?? expiresAt;
  return at ? moment(at) : 'never';
}

/** The text alone on stdout, so that it can go into a file. */
function printKey(out: Context['out'], made: MadeKey): void {
  out.one(made, () => {
    out.line(safeLine(made.key));
    out.say(`${made.role} of ${made.tenant}, id ${made.id}. Keep it: it is not shown again.`);
  });
}
