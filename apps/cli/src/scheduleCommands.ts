// `sluice schedules`: jobs that come back, by cron or by an interval.
import { Option } from 'commander';
import { pathOf } from './api.js';
import { declare, dryRunOption, group, yesOption, type SluiceCommand } from './command.js';
import type { ChangeOptions } from './context.js';
import { cliErrors } from './errors.js';
import { ago, duration, moment } from './human.js';
import { parseJson, parseLater, parsePositive, parseSpan } from './parse.js';
import { all } from './queueCommands.js';
import type { ScheduleRow } from './replies.js';
import { textFrom } from './stdin.js';
import type { Column } from './table.js';

const columns: Column<ScheduleRow>[] = [
  { title: 'QUEUE', value: ({ queue }) => queue },
  { title: 'NAME', value: ({ name }) => name, cut: true },
  { title: 'WHEN', value: ({ when }) => whenText(when) },
  { title: 'NEXT', value: ({ nextMs }) => (nextMs === null ? 'never' : moment(nextMs)), spare: true },
  { title: 'IN', value: ({ nextMs }) => (nextMs === null ? '–' : ago(nextMs)), align: 'right' },
  { title: 'MISSED', value: ({ missed }) => missed, spare: true },
  { title: 'DATA', value: ({ data }) => JSON.stringify(data), cut: true, spare: true },
];

interface SetFlags extends ChangeOptions {
  cron?: string;
  timezone?: string;
  every?: number;
  missed?: string;
  start?: number;
  end?: number;
  attempts?: number;
}

export function scheduleCommands(program: SluiceCommand): void {
  const schedules = group(program, 'schedules', 'Jobs that come back.')
    .example('schedules ls', 'by their next tick')
    .example(`schedules set mail digest '{"kind":"digest"}' --cron '0 8 * * 1-5'`, 'weekdays at eight')
    .example('schedules rm mail digest', 'no more');
  declare(schedules, 'ls', 'Schedules by their next tick.')
    .argument('[queue]', 'all queues unless stated')
    .example('schedules ls mail', 'of one queue')
    .completing('queue')
    .runs(async ({ api, show }, _flags: object, queue?: string) => {
      const { items } = await api.get<{ items: ScheduleRow[] }>('/v1/schedules', { queue });
      await show(columns, all(items));
    });
  declare(schedules, 'set', 'Make a schedule, or change the one with this name.')
    .argument('<queue>')
    .argument('<name>')
    .argument('[data]', 'JSON for each job; - reads it from stdin')
    .example(
      `schedules set mail digest '{"kind":"digest"}' --cron '0 8 * * 1-5' --timezone Europe/Berlin`,
      'weekdays at eight',
    )
    .example('schedules set mail sweep --every 15m', 'every quarter of an hour')
    .option('--cron <expression>', 'minute hour day month weekday')
    .option('--timezone <name>', 'of the cron expression; UTC unless stated')
    .option('--every <span>', 'so often: 15m', parseSpan)
    .addOption(
      new Option('--missed <policy>', 'ticks that nobody fired in time').choices(['skip', 'once', 'all']),
    )
    .option('--start <moment>', 'no tick before', parseLater)
    .option('--end <moment>', 'no tick after', parseLater)
    .option('--attempts <count>', 'runs of a job at most', parsePositive)
    .option(...dryRunOption)
    .completing('queue')
    .runs(
      async ({ api, out, stdin }, flags: SetFlags, queue: string, name: string, given: string = 'null') => {
        const body = {
          when: whenOf(flags),
          data: parseJson(await textFrom(given, stdin)),
          ...optionsOf(flags),
        };
        if (flags.dryRun)
          return out.would({ queue, name, ...body }, `${queue} ${name}: would tick ${whenText(body.when)}`);
        const schedule = await api.ask<ScheduleRow>('PUT', pathOf`/v1/queues/${queue}/schedules/${name}`, {
          body,
        });
        out.did(schedule ?? { queue, name }, `${queue} ${name}: ${whenText(body.when)}`);
      },
    );
  declare(schedules, 'rm', 'Remove a schedule; jobs that it made stay.')
    .argument('<queue>')
    .argument('<name>')
    .example('schedules rm mail digest --yes', 'without being asked')
    .option(...dryRunOption)
    .option(...yesOption)
    .completing('queue')
    .runs(async ({ api, out, confirm }, { dryRun }: ChangeOptions, queue: string, name: string) => {
      if (dryRun) {
        const { items } = await api.get<{ items: ScheduleRow[] }>('/v1/schedules', { queue });
        const schedule = items.find((item) => item.name === name);
        if (!schedule) throw cliErrors.NONE({ what: `queue "${queue}" has no schedule "${name}"` });
        return out.would(
          { queue, name },
          `${queue} ${name}: would not tick ${whenText(schedule.when)} any more`,
        );
      }
      await confirm(`Remove the schedule ${name} of ${queue}?`);
      await api.ask('DELETE', pathOf`/v1/queues/${queue}/schedules/${name}`);
      out.did({ queue, name, removed: true }, `${queue} ${name}: removed`);
    });
}

function whenOf({ cron, timezone, every }: SetFlags): ScheduleRow['when'] {
  if ((cron === undefined) === (every === undefined))
    throw cliErrors.USAGE({ reason: "say when: --cron '0 8 * * *' or --every 15m" });
  return cron === undefined
    ? { everyMs: every! }
    : { cron, ...(timezone !== undefined && { timeZone: timezone }) };
}

function optionsOf({ missed, start, end, attempts }: SetFlags): object {
  return {
    ...(missed !== undefined && { missed }),
    ...(start !== undefined && { startMs: start }),
    ...(end !== undefined && { endMs: end }),
    ...(attempts !== undefined && { attempts }),
  };
}

function whenText(when: ScheduleRow['when']): string {
  return 'cron' in when ? `${when.cron} (${when.timeZone ?? 'UTC'})` : `every ${duration(when.everyMs)}`;
}
