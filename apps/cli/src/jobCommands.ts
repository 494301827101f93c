// `sluice jobs`: find, look at, add, retry, cancel and replay jobs.
import { Option } from 'commander';
import { pathOf, type Api } from './api.js';
import { stateStyle } from './colour.js';
import { declare, dryRunOption, group, listOptions, wishOf, yesOption } from './command.js';
import type { ListOptions, SluiceCommand } from './command.js';
import type { ChangeOptions, Context } from './context.js';
import { forEach } from './bulk.js';
import { cliErrors } from './errors.js';
import { ago, count, moment } from './human.js';
import { gatherPair, parseCount, parseJson, parseLater, parsePositive, parseSpan } from './parse.js';
import type { JobReply, JobRow } from './replies.js';
import { safeLine } from './sanitise.js';
import { idsFrom, textFrom } from './stdin.js';
import { readable, type Column } from './table.js';

const states = ['waiting', 'delayed', 'blocked', 'active', 'done', 'dead', 'cancelled'];

export const jobColumns: Column<JobRow>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'STATE', value: ({ state }) => state, style: ({ state }) => stateStyle(state) },
  { title: 'ADDED', value: ({ createdMs }) => ago(createdMs), align: 'right' },
  { title: 'ATTEMPT', value: ({ attempt }) => count(attempt), align: 'right', spare: true },
  { title: 'AT', value: ({ atMs }) => (atMs === undefined ? '–' : ago(atMs)), align: 'right', spare: true },
  { title: 'GROUP', value: ({ group }) => group, spare: true, cut: true },
  { title: 'DATA', value: ({ preview, error }) => error ?? preview, cut: readable },
];

export function jobCommands(program: SluiceCommand): void {
  const jobs = group(program, 'jobs', 'Find, add, retry, cancel and replay jobs.')
    .example('jobs ls mail --state delayed', 'those that wait for their time')
    .example('jobs show mail 0Ab3', 'everything about one')
    .example(`jobs add mail '{"to":"ada@example.com"}'`, 'a new one');
  listJobs(jobs);
  showJob(jobs);
  addJob(jobs);
  replayJob(jobs);
  changeCommand(jobs, 'retry', 'Run jobs now that wait for their next attempt, or that died.', false);
  changeCommand(jobs, 'cancel', 'Cancel jobs; one that runs is told so.', true);
}

interface JobSearch extends ListOptions {
  state?: string;
  id?: string;
  field?: string;
  error?: string;
  fingerprint?: string;
  owner?: string;
}

function listJobs(jobs: SluiceCommand): void {
  const command = declare(jobs, 'ls', 'Jobs of a queue, by state, id, a field of their data, or the error.')
    .argument('<queue>')
    .example('jobs ls mail', 'the first fifty')
    .example('jobs ls mail --field user.id=17 --all', 'whose data say so')
    .example(
      'jobs ls mail --state dead --error timeout --json | jq -r .id',
      'ids of those that died of a timeout',
    )
    .addOption(new Option('-s, --state <state>', 'in this state').choices(states))
    .option('--id <id>', 'with this id')
    .option('--field <path=value>', 'with this value in their data: user.id=17')
    .option('--error <text>', 'that died of an error with this text')
    .option('--fingerprint <print>', 'that died of this cause; see: sluice dead groups')
    .option('--owner <owner>', 'of this owner')
    .completing('queue');
  listOptions(command).runs(async ({ api, show }, flags: JobSearch, queue: string) => {
    const [field, equals] = fieldOf(flags.field);
    const { state, id, error, fingerprint, owner } = flags;
    const query = { state, id, field, equals, error, fingerprint, owner };
    await show(jobColumns, api.list<JobRow>(pathOf`/v1/queues/${queue}/jobs`, query, wishOf(flags)));
  });
}

function fieldOf(text: string | undefined): [string | undefined, string | undefined] {
  if (text === undefined) return [undefined, undefined];
  return Object.entries(gatherPair(text))[0]!;
}

function showJob(jobs: SluiceCommand): void {
  declare(jobs, 'show', 'One job: its data, timeline, attempts, logs, stack and chain.')
    .argument('<queue-or-id>', 'its queue and its id, or only its id')
    .argument('[id]')
    .example('jobs show mail 0Ab3', 'in a queue')
    .example('jobs show 0Ab3', 'in whichever queue it is')
    .completing('queue')
    .runs(async ({ api, out }, _flags: object, first: string, second?: string) => {
      const [queue, id] = second === undefined ? [await queueOf(api, first), first] : [first, second];
      const job = await api.get<JobReply>(pathOf`/v1/queues/${queue}/jobs/${id}`);
      out.one(job, () => printJob(out, { ...job, queue }));
    });
}

/** The one queue that knows the id. */
async function queueOf(api: Api, id: string): Promise<string> {
  const { items } = await api.get<{ items: JobRow[] }>(pathOf`/v1/jobs/${id}`);
  if (items.length === 0) throw cliErrors.NONE({ what: `no queue knows a job "${id}"` });
  const queues = [...new Set(items.map(({ queue }) => queue))];
  if (queues.length > 1)
    throw cliErrors.USAGE({ reason: `several queues know ${id}: ${queues.join(', ')}; name one` });
  return queues[0]!;
}

function printJob(out: Context['out'], job: JobReply): void {
  const labels = Object.entries(job.labels).map(([name, value]) => `${name}=${value}`);
  out.pairs([
    ['job', job.id],
    ['queue', job.queue],
    ['state', job.state],
    ['added', job.createdMs === undefined ? undefined : `${moment(job.createdMs)} (${ago(job.createdMs)})`],
    ['due', job.dueMs === undefined ? undefined : `${moment(job.dueMs)} (${ago(job.dueMs)})`],
    ['attempt', job.attempt === undefined ? undefined : count(job.attempt)],
    ['priority', job.priority === undefined ? undefined : String(job.priority)],
    ['group', job.group],
    ['labels', labels.length > 0 ? labels.join(', ') : undefined],
    ['held by', job.session],
    [
      'progress',
      job.progress === undefined || job.progress === null ? undefined : JSON.stringify(job.progress),
    ],
  ]);
  if (job.data !== undefined) section(out, 'Data', JSON.stringify(job.data, undefined, 2));
  if (job.base64 !== undefined) section(out, 'Data (binary, in base64)', job.base64);
  if (job.result !== undefined && job.result !== null)
    section(out, 'Result', JSON.stringify(job.result, undefined, 2));
  if (job.error) section(out, 'Error', job.error.stack || `${job.error.name}: ${job.error.message}`);
  if (job.timeline.length > 0) {
    out.heading('Timeline');
    out.table(timelineColumns, job.timeline);
  }
  if (job.logs.length > 0) section(out, 'Logs', job.logs.join('\n'));
  if (job.chain.jobs.length > 0) {
    out.heading(job.chain.complete ? 'Chain' : 'Chain (the first jobs of it)');
    out.table(chainColumns, job.chain.jobs);
  }
}

function section(out: Context['out'], title: string, text: string): void {
  out.heading(title);
  out.block(text);
}

type TimelineRow = JobReply['timeline'][number];
const timelineColumns: Column<TimelineRow>[] = [
  { title: 'WHEN', value: ({ atMs }) => moment(atMs) },
  {
    title: 'WHAT',
    value: ({ what, attempt, kind }) =>
      [what, attempt === undefined ? '' : `#${attempt}`, kind ?? ''].filter(Boolean).join(' '),
    style: ({ what }) => (what === 'died' || what === 'failed' ? 'red' : undefined),
  },
  { title: 'MESSAGE', value: ({ message }) => message, cut: readable },
  { title: 'WORKER', value: ({ worker }) => worker, cut: true, spare: true },
];

type ChainRow = JobReply['chain']['jobs'][number];
const chainColumns: Column<ChainRow>[] = [
  { title: 'QUEUE', value: ({ queue }) => queue },
  { title: 'ID', value: ({ id }) => id },
  { title: 'STATE', value: ({ state }) => state ?? 'unknown', style: ({ state }) => stateStyle(state ?? '') },
  { title: 'WAITS FOR', value: ({ waitsFor }) => waitsFor.map(({ id }) => id).join(', '), cut: true },
];

interface AddFlags {
  id?: string;
  delay?: number;
  at?: number;
  priority?: number;
  group?: string;
  unique?: string;
  attempts?: number;
  timeout?: number;
  keepResult?: number;
  owner?: string;
  dryRun?: boolean;
}

function addJob(jobs: SluiceCommand): void {
  declare(jobs, 'add', 'Add a job.')
    .argument('<queue>')
    .argument('[data]', 'JSON; - reads it from stdin')
    .example(`jobs add mail '{"to":"ada@example.com"}'`, 'prints its id')
    .example(`jobs add mail '{"to":"ada@example.com"}' --delay 10m --attempts 5`, 'later, five times at most')
    .example('sluice jobs add mail - < letter.json', 'data from a file')
    .option('--id <id>', 'an id of your own; the same again changes nothing')
    .option('--delay <span>', 'not before so long: 10m', parseSpan)
    .option('--at <moment>', 'not before then', parseLater)
    .option('--priority <0-5>', '0 is the most urgent', parseCount)
    .option('--group <name>', 'takes turns with other groups')
    .option('--unique <key>', 'one at a time with this key')
    .option('--attempts <count>', 'runs at most', parsePositive)
    .option('--timeout <span>', 'a run may take so long', parseSpan)
    .option('--keep-result <span>', 'how long its result stays readable', parseSpan)
    .option('--owner <owner>', 'whose job it is; the name of the key unless stated')
    .option(...dryRunOption)
    .completing('queue')
    .runs(async ({ api, out, stdin }, flags: AddFlags, queue: string, given: string = 'null') => {
      const data = parseJson(await textFrom(given, stdin));
      const options = {
        ...(flags.id !== undefined && { id: flags.id }),
        ...(flags.delay !== undefined && { delayMs: flags.delay }),
        ...(flags.at !== undefined && { delayMs: Math.max(0, flags.at - Date.now()) }),
        ...(flags.priority !== undefined && { priority: flags.priority }),
        ...(flags.group !== undefined && { group: flags.group }),
        ...(flags.unique !== undefined && { unique: flags.unique }),
        ...(flags.attempts !== undefined && { attempts: flags.attempts }),
        ...(flags.timeout !== undefined && { timeoutMs: flags.timeout }),
        ...(flags.keepResult !== undefined && { keepResultMs: flags.keepResult }),
        ...(flags.owner !== undefined && { owner: flags.owner }),
      };
      if (flags.dryRun)
        return out.would({ queue, data, ...options }, `would be added to ${queue}: ${JSON.stringify(data)}`);
      const added = await api.post<{ id: string }>(pathOf`/v1/queues/${queue}/jobs`, { data, ...options });
      out.one(added, () => out.line(safeLine(added.id)));
    });
}

function replayJob(jobs: SluiceCommand): void {
  declare(jobs, 'replay', 'Run a job that ended again, with other data if you like.')
    .argument('<queue>')
    .argument('<id>')
    .argument('[data]', 'JSON instead of its own; - reads it from stdin')
    .example('jobs replay mail 0Ab3', 'as it was')
    .example(`jobs replay mail 0Ab3 '{"to":"eve@example.com"}'`, 'with other data')
    .option(...dryRunOption)
    .completing('queue')
    .runs(
      async ({ api, out, stdin }, { dryRun }: ChangeOptions, queue: string, id: string, given?: string) => {
        const body = given === undefined ? {} : { data: parseJson(await textFrom(given, stdin)) };
        if (dryRun) {
          const { state } = await api.get<JobReply>(pathOf`/v1/queues/${queue}/jobs/${id}`);
          return out.would({ queue, id, state }, `${queue} ${id}: is ${state}, would run again`);
        }
        const answer = await api.post<object>(pathOf`/v1/queues/${queue}/jobs/${id}/replay`, body);
        out.did({ queue, id, ...answer }, `${queue} ${id}: runs again`);
      },
    );
}

function changeCommand(
  jobs: SluiceCommand,
  verb: 'retry' | 'cancel',
  description: string,
  asks: boolean,
): void {
  const command = declare(jobs, verb, description)
    .argument('<queue>')
    .argument('<id...>', 'ids; - reads them from stdin')
    .example(`jobs ${verb} mail 0Ab3`, 'one')
    .example(
      `jobs ls mail --state delayed --all --json | sluice jobs ${verb} mail -${asks ? ' --yes' : ''}`,
      'many',
    )
    .option(...dryRunOption)
    .completing('queue');
  if (asks) command.option(...yesOption);
  command.runs(async (context, flags: ChangeOptions, queue: string, given: string[]) => {
    const ids = await idsFrom(given, context.stdin);
    if (asks && !flags.dryRun)
      await context.confirm(`Cancel ${ids.length === 1 ? ids[0]! : `${ids.length} jobs`} of ${queue}?`);
    await forEach(context, ids, flags, {
      look: (id) => context.api.get(pathOf`/v1/queues/${queue}/jobs/${id}`),
      change: (id) => context.api.post<object>(pathOf`/v1/queues/${queue}/jobs/${id}/${verb}`),
      would: (id) => `${queue} ${id}: would be ${verb === 'retry' ? 'retried' : 'cancelled'}`,
      did: (id) => `${queue} ${id}: ${verb === 'retry' ? 'runs now' : 'cancelled'}`,
    });
  });
}
