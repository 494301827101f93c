// `sluice webhooks`: addresses that are told what happens.
import { setTimeout as pause } from 'node:timers/promises';
import { pathOf } from './api.js';
import { stateStyle } from './colour.js';
import { declare, group, listOptions, wishOf, yesOption } from './command.js';
import type { ListOptions, SluiceCommand } from './command.js';
import type { ChangeOptions, Context } from './context.js';
import { cliErrors } from './errors.js';
import { count, duration, moment } from './human.js';
import { gather } from './parse.js';
import { all } from './queueCommands.js';
import { safeLine } from './sanitise.js';
import type { Column } from './table.js';

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
  { title: 'URL', value: ({ url }) => url, cut: true },
  { title: 'TOPICS', value: ({ topics }) => topics.join(', '), cut: true },
  { title: 'MADE', value: ({ createdAt }) => (createdAt ? moment(createdAt) : '–'), spare: true },
];

const deliveryColumns: Column<Delivery>[] = [
  { title: 'WHEN', value: ({ at }) => moment(at) },
  { title: 'TOPIC', value: ({ topic }) => topic },
  { title: 'STATE', value: ({ state }) => state, style: ({ state }) => stateStyle(state) },
  { title: 'ANSWER', value: ({ status }) => status, align: 'right' },
  { title: 'TOOK', value: ({ tookMs }) => duration(tookMs), align: 'right', spare: true },
  { title: 'ATTEMPT', value: ({ attempt }) => count(attempt), align: 'right', spare: true },
  { title: 'ERROR', value: ({ error }) => error, cut: true },
];

export function webhookCommands(program: SluiceCommand): void {
  const webhooks = group(program, 'webhooks', 'Addresses that are told what happens.')
    .example('webhooks create https://example.com/hook --topic job.died', 'prints its secret once')
    .example('webhooks test 4d2e', 'sends something and says what came back');
  declare(webhooks, 'ls', 'All webhooks.')
    .example('webhooks ls', 'a table')
    .runs(async ({ api, show }) => {
      const { items } = await api.get<{ items: WebhookRow[] }>('/v1/webhooks');
      await show(columns, all(items));
    });
  declare(webhooks, 'create', 'Make a webhook. The secret that signs its requests is printed once.')
    .argument('<url>')
    .example('webhooks create https://example.com/hook', 'told of everything')
    .example(
      'webhooks create https://example.com/hook --event job.died --event upload.completed',
      'of two things',
    )
    .option('--topic <topic>', 'only this; may be repeated', gather)
    .runs(async ({ api, out }, { topic = ['*'] }: { topic?: string[] }, url: string) => {
      const made = await api.post<WebhookRow>('/v1/webhooks', { url, topics: topic });
      out.one(made, () => {
        out.line(safeLine(made.secret ?? made.id));
        out.say(`webhook ${made.id}. Keep the secret: it is not shown again.`);
      });
    });
  declare(webhooks, 'test', 'Send something to a webhook and say what came back.')
    .argument('<id>')
    .example('webhooks test 4d2e', 'once')
    .runs(async (context, _flags: object, id: string) => {
      const sent = await context.api.post<{ id?: string; delivery?: string }>(
        pathOf`/v1/webhooks/${id}/test`,
      );
      const delivery = await outcomeOf(context, id, sent.delivery ?? sent.id ?? '');
      const { state, status, tookMs, error } = delivery;
      const worked = state === 'delivered';
      const answer = status === undefined ? 'no answer' : `answered ${status}`;
      context.out.did(
        delivery,
        `${id}: ${worked ? '' : 'not delivered, '}${answer} after ${duration(tookMs)}`,
      );
      if (!worked) throw cliErrors.UNHEALTHY({ what: error ?? `the address answered ${status}` });
    });
  const deliveries = declare(webhooks, 'deliveries', 'What a webhook was told, and what it answered.')
    .argument('<id>')
    .example('webhooks deliveries 4d2e', 'the latest');
  listOptions(deliveries).runs(({ api, show }, flags: ListOptions, id: string) =>
    show(deliveryColumns, api.list<Delivery>(pathOf`/v1/webhooks/${id}/deliveries`, {}, wishOf(flags))),
  );
  declare(webhooks, 'rm', 'Remove a webhook.')
    .argument('<id>')
    .example('webhooks rm 4d2e --yes', 'without being asked')
    .option(...yesOption)
    .runs(async ({ api, out, confirm }, _flags: ChangeOptions, id: string) => {
      await confirm(`Remove the webhook ${id}?`);
      await api.ask('DELETE', pathOf`/v1/webhooks/${id}`);
      out.did({ id, removed: true }, `${id}: removed`);
    });
}

/** The test travels the way of all deliveries, so it is found among them. */
async function outcomeOf({ api, signal }: Context, id: string, delivery: string): Promise<Delivery> {
  const endMs = Date.now() + testMs;
  while (Date.now() < endMs) {
    const { items } = await api.get<{ items: Delivery[] }>(pathOf`/v1/webhooks/${id}/deliveries`);
    const found = items.find((item) => item.id === delivery || item.eventId === delivery);
    if (found) return found;
    await pause(lookMs, undefined, { signal });
  }
  throw cliErrors.UNHEALTHY({
    what: `nothing came of it within ${duration(testMs)}; see: sluice webhooks deliveries ${id}`,
  });
}
