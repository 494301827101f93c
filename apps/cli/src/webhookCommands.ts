// `sluice webhooks`: addresses that are told what happens.
import { setTimeout as pause } from 'node:timers/promises';
import { pathOf, type Api, type Query } from './api.js';
import { stateStyle } from './colour.js';
import { declare, dryRunOption, group, yesOption, type SluiceCommand } from './command.js';
import type { ChangeOptions, Context } from './context.js';
import { cliErrors } from './errors.js';
import { count, duration, moment } from './human.js';
import { gather, parseSpan } from './parse.js';
import { all } from './queueCommands.js';
import { safeLine } from './sanitise.js';
import { readable, type Column } from './table.js';

interface WebhookRow {
  id: string;
  url: string;
  topics: string[];
  active: boolean;
  /** How many secrets sign now: two while one replaces another. */
  secrets?: number;
  tenant?: string;
  createdAt?: string;
  secret?: string;
}

interface Delivery {
  id: string;
  eventId: string;
  topic: string;
  state: 'delivered' | 'retrying' | 'dead' | 'skipped';
  attempt: number;
  status?: number;
  error?: string;
  tookMs: number;
  at: string;
}

/** How long a test is waited for; a receiver has ten seconds, and the queue its turn. */
const testMs = 30_000;
const lookMs = 300;

const columns: Column<WebhookRow>[] = [
  { title: 'ID', value: ({ id }) => id },
  {
    title: 'STATE',
    value: ({ active }) => (active ? 'on' : 'off'),
    style: ({ active }) => (active ? 'green' : 'yellow'),
  },
  { title: 'URL', value: ({ url }) => url, cut: readable },
  { title: 'TOPICS', value: ({ topics }) => topics.join(', '), cut: true, spare: true },
  { title: 'MADE', value: ({ createdAt }) => (createdAt ? moment(createdAt) : '–'), spare: true },
];

const deliveryColumns: Column<Delivery>[] = [
  { title: 'WHEN', value: ({ at }) => moment(at) },
  { title: 'TOPIC', value: ({ topic }) => topic },
  { title: 'STATE', value: ({ state }) => state, style: ({ state }) => stateStyle(state) },
  { title: 'ANSWER', value: ({ status }) => status, align: 'right' },
  { title: 'TOOK', value: ({ tookMs }) => duration(tookMs), align: 'right', spare: true },
  { title: 'ATTEMPT', value: ({ attempt }) => count(attempt), align: 'right', spare: true },
  { title: 'ERROR', value: ({ error }) => error, cut: readable },
];

interface Whose {
  everything?: boolean;
}
const whose = ['--everything', 'those that are told of all tenants; for keys of the installation'] as const;

export function webhookCommands(program: SluiceCommand): void {
  const webhooks = group(program, 'webhooks', 'Addresses that are told what happens.')
    .example('webhooks create https://example.com/hook --topic jobs.dead', 'prints its secret once')
    .example('webhooks test 4d2e', 'sends something and says what came back');
  declare(webhooks, 'ls', 'All webhooks.')
    .example('webhooks ls', 'a table')
    .option(...whose)
    .runs(({ api, show }, flags: Whose) =>
      show(
        columns,
        api.list<WebhookRow>('/v1/webhooks', queryOf(flags), { limit: 0, all: true }, { cursor: 'after' }),
      ),
    );
  createCommand(webhooks);
  setCommand(webhooks);
  testCommand(webhooks);
  declare(webhooks, 'rotate', 'Make a new secret; the one before signs as well for a while.')
    .argument('<id>')
    .example('webhooks rotate 4d2e --grace 1h', 'prints the new one once')
    .option('--grace <span>', 'how long the old secret signs as well', parseSpan)
    .option(...whose)
    .option(...dryRunOption)
    .option(...yesOption)
    .runs(async ({ api, out, confirm }, flags: Whose & ChangeOptions & { grace?: number }, id: string) => {
      if (flags.dryRun) {
        const { url } = await read(api, flags, id);
        return out.would({ id, url }, `${id}: would sign what goes to ${url} with a new secret`);
      }
      await confirm(`Make a new secret for the webhook ${id}?`);
      const body = flags.grace === undefined ? {} : { graceS: Math.round(flags.grace / 1_000) };
      printSecret(out, await api.post<WebhookRow>(pathOf`/v1/webhooks/${id}/rotate`, body, queryOf(flags)));
    });
  declare(webhooks, 'deliveries', 'What a webhook was told, and what it answered: the last hundred.')
    .argument('<id>')
    .example('webhooks deliveries 4d2e', 'the latest first')
    .option(...whose)
    .runs(async ({ api, show }, flags: Whose, id: string) => {
      const path = pathOf`/v1/webhooks/${id}/deliveries`;
      await show(deliveryColumns, all((await api.get<{ items: Delivery[] }>(path, queryOf(flags))).items));
    });
  declare(webhooks, 'rm', 'Remove a webhook; what waits for it is not delivered.')
    .argument('<id>')
    .example('webhooks rm 4d2e --yes', 'without being asked')
    .option(...whose)
    .option(...dryRunOption)
    .option(...yesOption)
    .runs(async ({ api, out, confirm }, flags: Whose & ChangeOptions, id: string) => {
      if (flags.dryRun) {
        const { url } = await read(api, flags, id);
        return out.would({ id, url }, `${id}: would be removed, and ${url} told nothing more`);
      }
      await confirm(`Remove the webhook ${id}?`);
      await api.ask('DELETE', pathOf`/v1/webhooks/${id}`, { query: queryOf(flags) });
      out.did({ id, removed: true }, `${id}: removed`);
    });
}

function createCommand(webhooks: SluiceCommand): void {
  declare(webhooks, 'create', 'Make a webhook. The secret that signs its requests is printed once.')
    .argument('<url>')
    .example('webhooks create https://example.com/hook', 'told of everything of the tenant')
    .example("webhooks create https://example.com/hook --topic jobs.dead --topic 'repository.*'", 'of some')
    .option('--topic <topic>', 'only this; may be repeated', gather)
    .option(...whose)
    .option(...dryRunOption)
    .runs(async ({ api, out }, flags: Whose & ChangeOptions & { topic?: string[] }, url: string) => {
      const body = { url, topics: flags.topic ?? ['*'] };
      if (flags.dryRun) return out.would(body, `${url}: would be told of ${body.topics.join(', ')}`);
      printSecret(out, await api.post<WebhookRow>('/v1/webhooks', body, queryOf(flags)));
    });
}

interface SetFlags extends Whose, ChangeOptions {
  to?: string;
  topic?: string[];
  on?: boolean;
  off?: boolean;
}

function setCommand(webhooks: SluiceCommand): void {
  declare(webhooks, 'set', 'Change where a webhook leads and what it is told, or switch it off and on.')
    .argument('<id>')
    .example('webhooks set 4d2e --off', 'it is told nothing for now')
    .example('webhooks set 4d2e --to https://example.com/other --topic jobs.dead', 'elsewhere, of less')
    .option('--to <address>', 'where it leads')
    .option('--topic <topic>', 'only this; may be repeated', gather)
    .option('--on', 'switch it on')
    .option('--off', 'switch it off')
    .option(...whose)
    .option(...dryRunOption)
    .runs(async ({ api, out }, flags: SetFlags, id: string) => {
      const change = {
        ...(flags.to !== undefined && { url: flags.to }),
        ...(flags.topic && { topics: flags.topic }),
        ...((flags.on || flags.off) && { active: flags.on === true }),
      };
      if (Object.keys(change).length === 0 || (flags.on && flags.off))
        throw cliErrors.USAGE({ reason: 'say what to change: --to, --topic, --on or --off' });
      const path = pathOf`/v1/webhooks/${id}`;
      if (flags.dryRun) {
        await api.get<WebhookRow>(path, queryOf(flags));
        return out.would({ id, ...change }, `${id}: would be changed`);
      }
      out.did(
        await api.ask<WebhookRow>('PATCH', path, { body: change, query: queryOf(flags) }),
        `${id}: changed`,
      );
    });
}

function testCommand(webhooks: SluiceCommand): void {
  declare(webhooks, 'test', 'Send something to a webhook and say what came back.')
    .argument('<id>')
    .example('webhooks test 4d2e', 'once')
    .option(...whose)
    .runs(async (context, flags: Whose, id: string) => {
      const query = queryOf(flags);
      const sent = await context.api.post<{ delivery: string }>(pathOf`/v1/webhooks/${id}/test`, {}, query);
      const delivery = await outcomeOf(context, id, sent.delivery, query);
      const { state, status, tookMs, error } = delivery;
      const worked = state === 'delivered';
      const answer = status === undefined ? 'no answer' : `answered ${status}`;
      context.out.did(
        delivery,
        `${id}: ${worked ? '' : 'not delivered, '}${answer} after ${duration(tookMs)}`,
      );
      if (!worked) throw cliErrors.UNHEALTHY({ what: error ?? `the address answered ${status}` });
    });
}

function read(api: Api, flags: Whose, id: string): Promise<WebhookRow> {
  return api.get<WebhookRow>(pathOf`/v1/webhooks/${id}`, queryOf(flags));
}

function queryOf({ everything }: Whose): Query {
  return everything ? { tenant: '*' } : {};
}

function printSecret(out: Context['out'], made: WebhookRow): void {
  out.one(made, () => {
    out.line(safeLine(made.secret ?? made.id));
    out.say(`webhook ${made.id}. Keep the secret: it is not shown again.`);
  });
}

/** The test travels the way of all deliveries, so it is found among them. */
async function outcomeOf(
  { api, signal }: Context,
  id: string,
  delivery: string,
  query: Query,
): Promise<Delivery> {
  const endMs = Date.now() + testMs;
  while (Date.now() < endMs) {
    const { items } = await api.get<{ items: Delivery[] }>(pathOf`/v1/webhooks/${id}/deliveries`, query);
    const found = items.find((item) => item.id === delivery || item.eventId === delivery);
    if (found) return found;
    await pause(lookMs, undefined, { signal });
  }
  throw cliErrors.UNHEALTHY({
    what: `nothing came of it within ${duration(testMs)}; see: sluice webhooks deliveries ${id}`,
  });
}
