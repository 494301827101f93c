// `sluice retry`: jobs that failed and wait for their next attempt.
import { pathOf } from './api.js';
import { forEach } from './bulk.js';
import { declare, dryRunOption, group, listOptions, wishOf } from './command.js';
import type { ListOptions, SluiceCommand } from './command.js';
import type { ChangeOptions } from './context.js';
import { cliErrors } from './errors.js';
import { ago, count } from './human.js';
import { idsFrom } from './stdin.js';
import type { RetryRow } from './replies.js';
import { readable, type Column } from './table.js';

const columns: Column<RetryRow>[] = [
  { title: 'QUEUE', value: ({ queue }) => queue },
  { title: 'ID', value: ({ id }) => id },
  { title: 'DUE', value: ({ dueMs }) => ago(dueMs), align: 'right' },
  { title: 'ATTEMPT', value: ({ attempt }) => count(attempt), align: 'right', spare: true },
  { title: 'LAST ERROR', value: ({ error }) => error, cut: readable },
];

export function retryCommands(program: SluiceCommand): void {
  const retry = group(program, 'retry', 'Jobs that failed and wait for their next attempt.')
    .example('retry ls', 'of all queues, with the time that is left')
    .example('retry now mail 0Ab3', 'not later but now');
  const list = declare(retry, 'ls', 'Jobs that wait for their next attempt, and why.')
    .argument('[queue]', 'all queues unless stated')
    .example('retry ls mail', 'of one queue')
    .completing('queue');
  listOptions(list).runs(({ api, show }, flags: ListOptions, queue?: string) =>
    show(columns, api.list<RetryRow>('/v1/retries', { queue }, wishOf(flags))),
  );
  declare(retry, 'now', 'Run jobs now instead of when they are due.')
    .argument('<queue>')
    .argument('[id...]', 'ids; - reads them from stdin')
    .example('retry now mail 0Ab3', 'one')
    .example('retry now mail --all', 'every one of the queue')
    .option('--all', 'every job of the queue that waits for its next attempt')
    .option(...dryRunOption)
    .completing('queue')
    .runs(async (context, flags: ChangeOptions & { all?: boolean }, queue: string, given: string[]) => {
      const { api } = context;
      if (given.length > 0 === (flags.all === true))
        throw cliErrors.USAGE({ reason: 'give ids, or say --all' });
      const ids: string[] = [];
      if (flags.all)
        for await (const { id } of api.list<RetryRow>('/v1/retries', { queue }, { limit: 0, all: true }))
          ids.push(id);
      else ids.push(...(await idsFrom(given, context.stdin)));
      await forEach(context, ids, flags, {
        look: (id) => api.get(pathOf`/v1/queues/${queue}/jobs/${id}`),
        change: (id) => api.post<object>(pathOf`/v1/queues/${queue}/jobs/${id}/retry`),
        would: (id) => `${queue} ${id}: would run now`,
        did: (id) => `${queue} ${id}: runs now`,
      });
    });
}
