// `sluice workers`: who works, and who shall take nothing more.
import { pathOf } from './api.js';
import { declare, dryRunOption, group, yesOption, type SluiceCommand } from './command.js';
import type { ChangeOptions } from './context.js';
import { cliErrors } from './errors.js';
import { ago, count, duration } from './human.js';
import { all } from './queueCommands.js';
import type { WorkerRow } from './replies.js';
import type { Column } from './table.js';

const columns: Column<WorkerRow>[] = [
  { title: 'QUEUE', value: ({ queue }) => queue },
  { title: 'WORKER', value: ({ name }) => name, cut: true },
  { title: 'HOST', value: ({ host, pid }) => `${host}:${pid}`, cut: true, spare: true },
  {
    title: 'ACTIVE',
    value: ({ active, concurrency }) => `${count(active)}/${count(concurrency)}`,
    align: 'right',
  },
  { title: 'STARTED', value: ({ startedMs }) => ago(startedMs), align: 'right', spare: true },
  {
    title: 'LEASE',
    value: ({ leaseLeftMs }) => (leaseLeftMs < 0 ? 'lost' : duration(leaseLeftMs)),
    align: 'right',
    style: ({ leaseLeftMs }) => (leaseLeftMs < 0 ? 'red' : undefined),
  },
  {
    title: 'STATE',
    value: ({ drain }) => (drain === 'asked' ? 'draining' : (drain ?? 'working')),
    style: ({ drain }) => (drain ? 'yellow' : undefined),
    spare: true,
  },
  { title: 'SESSION', value: ({ session }) => session, cut: true },
];

export function workerCommands(program: SluiceCommand): void {
  const workers = group(program, 'workers', 'See workers, and let one take nothing more.')
    .example('workers ls', 'all of them')
    .example('workers drain mail worker-1', 'it ends what it has and takes nothing more');
  declare(workers, 'ls', 'Workers and what they hold.')
    .argument('[queue]', 'all queues unless stated')
    .example('workers ls mail', 'of one queue')
    .completing('queue')
    .runs(async ({ api, show }, _flags: object, queue?: string) => {
      const { items } = await api.get<{ items: WorkerRow[] }>('/v1/workers', { queue });
      await show(columns, all(items));
    });
  declare(workers, 'drain', 'Let a worker end what it has and take nothing more.')
    .argument('<queue>')
    .argument('<worker>', 'its name, host:pid, or session')
    .example('workers drain mail worker-1', 'by its name')
    .example('workers drain mail web-2:4711 --yes', 'by its host and process')
    .example('workers drain mail worker-1 --undo', 'it takes jobs again')
    .option('--undo', 'let it take jobs again')
    .option(...dryRunOption)
    .option(...yesOption)
    .completing('queue')
    .runs(
      async (
        { api, out, confirm },
        flags: ChangeOptions & { undo?: boolean },
        queue: string,
        wanted: string,
      ) => {
        const { items } = await api.get<{ items: WorkerRow[] }>('/v1/workers', { queue });
        const meant = items.filter((row) => isMeant(row, wanted));
        if (meant.length === 0)
          throw cliErrors.NONE({
            what: `no worker of ${queue} is called "${wanted}"; see: sluice workers ls ${queue}`,
          });
        if (meant.length > 1)
          throw cliErrors.USAGE({
            reason: `${meant.length} workers are called ${wanted}; name one by host:pid or session`,
          });
        const { session } = meant[0]!;
        const drain = !flags.undo;
        const rest = drain ? 'nothing more' : 'jobs again';
        if (flags.dryRun) return out.would({ queue, session, drain }, `${wanted} would take ${rest}`);
        if (drain) await confirm(`Let ${wanted} of ${queue} end what it has and take nothing more?`);
        const answer = await api.post<object>(pathOf`/v1/queues/${queue}/workers/${session}/drain`, {
          drain,
        });
        out.did({ queue, session, ...answer }, `${wanted} takes ${rest}`);
      },
    );
}

function isMeant(row: WorkerRow, wanted: string): boolean {
  return row.name === wanted || `${row.host}:${row.pid}` === wanted || row.session === wanted;
}
