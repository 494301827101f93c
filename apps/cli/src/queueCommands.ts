// `sluice queues`: how they are, and what holds them back.
import { Option } from 'commander';
import { pathOf } from './api.js';
import { forEach } from './bulk.js';
import { declare, dryRunOption, group, type SluiceCommand } from './command.js';
import type { ChangeOptions, Context } from './context.js';
import { cliErrors } from './errors.js';
import { ago, count, counted, duration } from './human.js';
import { parsePositive, parseRate } from './parse.js';
import type { QueueDetail, QueueSnapshot, RateLimit, Rules } from './replies.js';
import { idsFrom } from './stdin.js';
import { readable, type Column } from './table.js';

export const queueColumns: Column<QueueSnapshot>[] = [
  { title: 'QUEUE', value: ({ name }) => name, cut: readable },
  {
    title: 'STATE',
    value: ({ paused, problem }) => (problem ? problem.code : paused ? 'paused' : 'running'),
    style: ({ paused, problem }) => (problem ? 'red' : paused ? 'yellow' : 'green'),
  },
  { title: 'WAITING', value: ({ counts }) => count(counts.waiting), align: 'right' },
  { title: 'ACTIVE', value: ({ counts }) => count(counts.active), align: 'right' },
  { title: 'DELAYED', value: ({ counts }) => count(counts.delayed), align: 'right' },
  {
    title: 'DEAD',
    value: ({ counts }) => count(counts.dead),
    align: 'right',
    style: ({ counts }) => (counts.dead > 0 ? 'red' : undefined),
  },
  { title: 'WORKERS', value: ({ counts }) => count(counts.workers), align: 'right', spare: true },
  {
    title: 'OLDEST',
    value: ({ counts }) => (counts.waiting > 0 ? duration(counts.oldestWaitingMs) : '–'),
    align: 'right',
  },
  { title: 'BLOCKED', value: ({ counts }) => count(counts.blocked), align: 'right', spare: true },
  { title: 'DONE/S', value: ({ rates }) => count(rates?.done), align: 'right', spare: true },
  { title: 'FAILED/S', value: ({ rates }) => count(rates?.failed), align: 'right', spare: true },
];

export function queueCommands(program: SluiceCommand): void {
  const queues = group(program, 'queues', 'See, pause, resume and limit queues.')
    .example('queues ls', 'all of them with their counts')
    .example('queues pause mail', 'nothing of it starts any more')
    .example('queues limit mail --max-active 10 --rate 100/1m', 'at most so much');
  declare(queues, 'ls', 'All queues with their counts.')
    .example('queues ls', 'a table')
    .example("queues ls --json | jq -r 'select(.counts.dead > 0).name'", 'those with dead letters')
    .runs(async ({ api, show }) => {
      const { items } = await api.get<{ items: QueueSnapshot[] }>('/v1/queues');
      await show(queueColumns, all(items));
    });
  declare(queues, 'show', 'One queue: counts, limits, what died in it.')
    .argument('<queue>')
    .example('queues show mail', 'everything about it')
    .completing('queue')
    .runs(async ({ api, out }, _flags: object, name: string) => {
      const queue = await api.get<QueueDetail>(pathOf`/v1/queues/${name}`);
      out.one(queue, () => showQueue(out, queue));
    });
  pauseCommand(queues, 'pause', 'Let nothing of a queue start; what runs goes on.');
  pauseCommand(queues, 'resume', 'Let jobs of a queue start again.');
  limitCommand(queues);
}

function pauseCommand(queues: SluiceCommand, verb: 'pause' | 'resume', description: string): void {
  declare(queues, verb, description)
    .argument('<queue...>', 'names; - reads them from stdin')
    .example(`queues ${verb} mail images`, 'two of them')
    .option(...dryRunOption)
    .completing('queue')
    .runs(async (context, flags: ChangeOptions, given: string[]) => {
      const { api, stdin } = context;
      await forEach(context, await idsFrom(given, stdin), flags, {
        of: (queue) => ({ queue }),
        look: (name) => api.get(pathOf`/v1/queues/${name}`),
        change: (name) => api.post<object>(pathOf`/v1/queues/${name}/${verb}`),
        would: (name) => `${name}: would be ${verb}d`,
        did: (name) => `${name}: ${verb}d`,
      });
    });
}

interface LimitFlags {
  maxActive?: number | 'none';
  rate?: RateLimit | 'none';
  groupMaxActive?: number | 'none';
  groupRate?: RateLimit | 'none';
  events?: number | 'none';
}

function limitCommand(queues: SluiceCommand): void {
  declare(queues, 'limit', 'Limit how many jobs of a queue run at once and how many start in a while.')
    .argument('<queue>')
    .example('queues limit mail --max-active 10', 'ten at once')
    .example('queues limit mail --rate 100/1m --group-max-active 1', 'a hundred a minute; one of each group')
    .example('queues limit mail --rate none', 'no such limit any more')
    .addOption(new Option('--max-active <n>', 'jobs at once, or none').argParser(orNone(parsePositive)))
    .addOption(new Option('--rate <n/span>', 'starts in a while, or none').argParser(orNone(parseRate)))
    .addOption(
      new Option('--group-max-active <n>', 'the same for each group').argParser(orNone(parsePositive)),
    )
    .addOption(new Option('--group-rate <n/span>', 'the same for each group').argParser(orNone(parseRate)))
    .addOption(
      new Option('--events <n>', 'about how many events are kept, or none').argParser(orNone(parsePositive)),
    )
    .option(...dryRunOption)
    .completing('queue')
    .runs(async ({ api, out }, flags: LimitFlags & ChangeOptions, name: string) => {
      const rules = rulesOf(flags);
      if (Object.keys(rules).length === 0)
        throw cliErrors.USAGE({
          reason: 'name a limit: --max-active, --rate, --group-max-active, --group-rate or --events',
        });
      if (flags.dryRun)
        return out.would({ queue: name, rules }, `${name} would get: ${JSON.stringify(rules)}`);
      const answer = await api.ask<object>('PATCH', pathOf`/v1/queues/${name}/limits`, { body: rules });
      out.did({ queue: name, ...answer }, `${name}: limits changed`);
    });
}

function rulesOf({ maxActive, rate, groupMaxActive, groupRate, events }: LimitFlags): Rules {
  const perGroup = {
    ...(groupMaxActive !== undefined && { maxActive: limitOf(groupMaxActive) }),
    ...(groupRate !== undefined && { rate: limitOf(groupRate) }),
  };
  return {
    ...(maxActive !== undefined && { maxActive: limitOf(maxActive) }),
    ...(rate !== undefined && { rate: limitOf(rate) }),
    ...(Object.keys(perGroup).length > 0 && { perGroup }),
    ...(events !== undefined && { events: limitOf(events) }),
  };
}

/** commander takes a null for no value at all, so none stays a word until the rules are made. */
function orNone<T>(parse: (text: string) => T): (text: string) => T | 'none' {
  return (text) => (text === 'none' ? text : parse(text));
}

function limitOf<T>(given: T | 'none'): T | null {
  return given === 'none' ? null : given;
}

function showQueue(
  out: Context['out'],
  { name, paused, counts, rates, partitions, rules, dead, problem }: QueueDetail,
): void {
  out.pairs([
    ['queue', name],
    ['state', problem ? `${problem.code}: ${problem.message}` : paused ? 'paused' : 'running'],
    ['waiting', count(counts.waiting)],
    ['oldest waits', counts.waiting > 0 ? duration(counts.oldestWaitingMs) : undefined],
    ['active', count(counts.active)],
    ['delayed', count(counts.delayed)],
    ['next due', counts.nextDueMs === undefined ? undefined : ago(counts.nextDueMs)],
    ['blocked', count(counts.blocked)],
    ['dead', count(counts.dead)],
    ['remembered', count(counts.done)],
    ['workers', count(counts.workers)],
    ['partitions', count(partitions)],
    [
      'per second',
      rates
        ? `${count(rates.added)} added, ${count(rates.done)} done, ${count(rates.failed)} failed`
        : undefined,
    ],
    ['limits', limitsText(rules)],
    [
      'attempts of the dead',
      dead.averageAttempts === null ? undefined : `${count(dead.averageAttempts)} on average`,
    ],
    [
      'most die of',
      dead.topError ? `${dead.topError.title} (${counted(dead.topError.count, 'letter')})` : undefined,
    ],
  ]);
}

export function limitsText({ maxActive, rate, perGroup, events }: Rules): string {
  const rateText = (limit: RateLimit): string => `${count(limit.max)} starts per ${duration(limit.perMs)}`;
  const parts = [
    maxActive ? `${count(maxActive)} at once` : '',
    rate ? rateText(rate) : '',
    perGroup?.maxActive ? `${count(perGroup.maxActive)} at once per group` : '',
    perGroup?.rate ? `${rateText(perGroup.rate)} per group` : '',
    events ? `${count(events)} events kept` : '',
  ];
  return parts.filter(Boolean).join(', ') || 'none';
}

/** A list that is there at once, as one that comes. */
export async function* all<Item>(
  items: readonly Item[],
): AsyncGenerator<Item, { seen: number; scanned: number; more: boolean }> {
  yield* items;
  return { seen: items.length, scanned: items.length, more: false };
}
