// `sluice operations`: replays and discards of many dead letters run on the server, resumable; here they are watched and cancelled.
import { pathOf, type Api } from './api.js';
import { stateStyle } from './colour.js';
import {
  declare,
  group,
  listOptions,
  wishOf,
  dryRunOption,
  yesOption,
  type ListOptions,
  type SluiceCommand,
} from './command.js';
import type { ChangeOptions, Context } from './context.js';
import { cliErrors } from './errors.js';
import { ago, count, percent } from './human.js';
import type { Operation } from './replies.js';
import type { Column } from './table.js';
import { cutText } from './textWidth.js';
import { setTimeout as pause } from 'node:timers/promises';

const watchMs = 500;
const ended = new Set(['done', 'cancelled', 'failed']);

const columns: Column<Operation>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'WHAT', value: (operation) => whatOf(operation) },
  {
    title: 'STATE',
    value: ({ state, stopping }) => (stopping ? 'stopping' : state),
    style: ({ state }) => stateStyle(state),
  },
  { title: 'PROGRESS', value: (operation) => progressText(operation), cut: true },
  { title: 'BEGUN', value: ({ createdMs }) => ago(createdMs), align: 'right', spare: true },
];

export function operationCommands(program: SluiceCommand): void {
  const operations = group(
    program,
    'operations',
    'Watch and cancel replays and discards that run on the server.',
  )
    .example('operations ls', 'what runs, and what ran')
    .example('operations show 0Ab3 --follow', 'until it has ended');
  const list = declare(operations, 'ls', 'Operations, the latest first.').example('operations ls', 'a table');
  listOptions(list).runs(({ api, show }, flags: ListOptions) =>
    show(columns, api.list<Operation>('/v1/operations', {}, wishOf(flags))),
  );
  declare(operations, 'show', 'One operation and how far it is.')
    .argument('<id>')
    .example('operations show 0Ab3', 'now')
    .example('operations show 0Ab3 --follow', 'until it has ended')
    .option('-f, --follow', 'until it has ended')
    .runs(async (context, { follow }: { follow?: boolean }, id: string) => {
      const operation = follow ? await watch(context, id) : await read(context.api, id);
      context.out.one(operation, () => context.out.table(columns, [operation]));
    });
  declare(operations, 'cancel', 'Stop an operation; what it did stays done.')
    .argument('<id>')
    .example('operations cancel 0Ab3 --yes', 'without being asked')
    .option(...dryRunOption)
    .option(...yesOption)
    .runs(async ({ api, out, confirm }, { dryRun }: ChangeOptions, id: string) => {
      if (dryRun) {
        const operation = await read(api, id);
        const would = ended.has(operation.state) ? `has ended already, ${operation.state}` : 'would stop';
        return out.would({ id, state: operation.state }, `${id}: ${would}, ${progressText(operation)}`);
      }
      await confirm(`Stop the operation ${id}?`);
      const answer = await api.post<Partial<Operation>>(pathOf`/v1/operations/${id}/cancel`);
      const isOver = ended.has(answer?.state ?? '') && answer.state !== 'cancelled';
      out.did(
        { id, ...answer },
        isOver ? `${id}: had ended already, ${answer.state}` : `${id}: told to stop`,
      );
    });
  declare(operations, 'resume', 'Let an operation that failed go on where it stopped.')
    .argument('<id>')
    .example('operations resume 0Ab3', 'once its cause is gone')
    .option(...dryRunOption)
    .runs(async ({ api, out }, { dryRun }: ChangeOptions, id: string) => {
      if (dryRun) {
        const { state } = await read(api, id);
        const would = state === 'failed' ? 'would go on' : `is ${state}; only one that failed goes on`;
        return out.would({ id, state }, `${id}: ${would}`);
      }
      const answer = await api.post<object>(pathOf`/v1/operations/${id}/resume`);
      out.did({ id, ...answer }, `${id}: goes on`);
    });
}

/** Shows its progress on a terminal until it has ended. Ctrl-C stops the watching, not the operation. */
export async function watch({ api, out, signal }: Context, id: string): Promise<Operation> {
  const isShown = !!out.stderr.isTTY && !out.isQuiet;
  const draw = (text: string): void => {
    if (isShown) out.stderr.write(`\r\x1b[2K${cutText(text, (out.stderr.columns ?? 80) - 1)}`);
  };
  try {
    for (;;) {
      const operation = await read(api, id);
      if (ended.has(operation.state)) return operation;
      draw(`${whatOf(operation)}: ${progressText(operation)}`);
      await pause(watchMs, undefined, { signal });
    }
  } finally {
    draw('');
    if (signal.aborted) out.say(`it goes on without you: sluice operations show ${id} --follow`);
  }
}

/** Says how it ended; one that died or was stopped is a failure. */
export function report({ out }: Context, operation: Operation): void {
  out.did(operation, `${whatOf(operation)}: ${operation.state}, ${progressText(operation)}`);
  if (operation.state !== 'done')
    throw cliErrors.UNHEALTHY({
      what: operation.error?.message ?? `the operation ended as ${operation.state}`,
    });
}

function read(api: Api, id: string): Promise<Operation> {
  return api.get<Operation>(pathOf`/v1/operations/${id}`);
}

function whatOf({ kind, queue }: Operation): string {
  return `${kind} ${queue}`;
}

function progressText({ progress: { moved, total } }: Operation): string {
  if (total === undefined) return count(moved);
  return `${count(moved)} of ${count(total)} (${percent(total === 0 ? 1 : moved / total)})`;
}
