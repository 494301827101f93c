// `sluice dead`: what died, of what; repaired, run again, given up, exported.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathOf, type Query } from './api.js';
import { declare, dryRunOption, group, listOptions, wishOf, yesOption } from './command.js';
import type { ListOptions, SluiceCommand } from './command.js';
import type { ChangeOptions, Context } from './context.js';
import { cliErrors } from './errors.js';
import { ago, count, counted, moment } from './human.js';
import { report, watch } from './operationCommands.js';
import { parseJson, parseMoment, parsePositive } from './parse.js';
import { all } from './queueCommands.js';
import type {
  AttemptRecord,
  DeadGroup,
  DeadGroups,
  DeadLetter,
  Operation,
  OperationPreview,
} from './replies.js';
import { safeJson, safeLine } from './sanitise.js';
import { idsFrom, textFrom } from './stdin.js';
import { readable, type Column } from './table.js';

interface FilterFlags {
  fingerprint?: string;
  text?: string;
  since?: number;
  until?: number;
}

const letterColumns: Column<DeadLetter>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'DIED', value: ({ lastFailureMs }) => ago(lastFailureMs), align: 'right' },
  { title: 'RUNS', value: ({ attemptCount }) => count(attemptCount), align: 'right', spare: true },
  { title: 'CAUSE', value: ({ fingerprint }) => fingerprint, spare: true },
  { title: 'ERROR', value: ({ error }) => `${error.name}: ${error.message}`, cut: readable },
];

const groupColumns: Column<DeadGroup>[] = [
  { title: 'LETTERS', value: (row) => count(row.count), align: 'right' },
  { title: 'QUEUE', value: ({ queue }) => queue },
  { title: 'FIRST', value: ({ firstMs }) => ago(firstMs), align: 'right', spare: true },
  { title: 'LAST', value: ({ lastMs }) => ago(lastMs), align: 'right' },
  { title: 'CAUSE', value: ({ fingerprint }) => fingerprint },
  { title: 'ERROR', value: ({ title }) => title, cut: readable },
];

export function deadCommands(program: SluiceCommand): void {
  const dead = group(program, 'dead', 'Dead letters: read, repair, run again, give up, export.')
    .example('dead groups', 'what they died of, most frequent first')
    .example('dead replay mail --fingerprint 1f2e --per-second 10', 'those of one cause, slowly')
    .example('dead edit mail 0Ab3', 'in your editor, then replay it');
  listLetters(dead);
  listGroups(dead);
  showLetter(dead);
  editLetter(dead);
  moveCommand(dead, 'replay', 'replay', 'Run dead letters again.');
  moveCommand(dead, 'rm', 'discard', 'Give dead letters up: they are deleted.');
  exportLetters(dead);
}

function filterOptions(command: SluiceCommand): SluiceCommand {
  return command
    .option('--fingerprint <print>', 'died of this cause; see: sluice dead groups')
    .option('--text <text>', 'whose error has this text')
    .option('--since <moment>', 'died at or after: 2026-03-01T14:00, or 2h ago as 2h', parseMoment)
    .option('--until <moment>', 'died at or before', parseMoment);
}

function filterOf({ fingerprint, text, since, until }: FilterFlags): Query {
  return { fingerprint, text, from: since, to: until };
}

function listLetters(dead: SluiceCommand): void {
  const command = declare(dead, 'ls', 'Dead letters of a queue, the latest first.')
    .argument('<queue>')
    .example('dead ls mail', 'the latest fifty')
    .example('dead ls mail --since 2h --text timeout --all', 'those of the last two hours with this error')
    .completing('queue');
  listOptions(filterOptions(command)).runs(({ api, show }, flags: FilterFlags & ListOptions, queue: string) =>
    show(
      letterColumns,
      api.list<DeadLetter>(pathOf`/v1/queues/${queue}/dead`, filterOf(flags), wishOf(flags)),
    ),
  );
}

function listGroups(dead: SluiceCommand): void {
  declare(dead, 'groups', 'What letters died of, most frequent first.')
    .argument('[queue]', 'all queues unless stated')
    .example('dead groups', 'of all queues')
    .example('dead groups mail', 'of one')
    .completing('queue')
    .runs(async ({ api, out, show }, _flags: object, queue?: string) => {
      const { items, letters, complete } = await api.get<DeadGroups>('/v1/dead/groups', { queue });
      await show(groupColumns, all(items));
      if (letters > 0)
        out.say(`${counted(letters, 'dead letter')} in all${complete ? '' : '; there are more causes'}`);
    });
}

function showLetter(dead: SluiceCommand): void {
  declare(dead, 'show', 'One dead letter: error, stack, data, attempts.')
    .argument('<queue>')
    .argument('<id>')
    .example('dead show mail 0Ab3', 'everything about it')
    .completing('queue')
    .runs(async ({ api, out }, _flags: object, queue: string, id: string) => {
      const letter = await api.get<DeadLetter>(pathOf`/v1/queues/${queue}/dead/${id}`);
      out.one(letter, () => printLetter(out, queue, letter));
    });
}

function printLetter(out: Context['out'], queue: string, letter: DeadLetter): void {
  out.pairs([
    ['letter', letter.id],
    ['queue', queue],
    ['cause', letter.fingerprint],
    ['added', moment(letter.createdMs)],
    ['failed first', moment(letter.firstFailureMs)],
    ['died', `${moment(letter.lastFailureMs)} (${ago(letter.lastFailureMs)})`],
    ['runs', count(letter.attemptCount)],
  ]);
  out.heading('Error');
  out.block(letter.error.stack || `${letter.error.name}: ${letter.error.message}`);
  if (letter.data !== undefined) {
    out.heading('Data');
    out.block(JSON.stringify(letter.data, undefined, 2));
  }
  if (letter.attempts.length > 0) {
    out.heading('Attempts');
    out.table(attemptColumns, letter.attempts);
  }
}

const attemptColumns: Column<AttemptRecord>[] = [
  { title: 'RUN', value: ({ attempt }) => count(attempt), align: 'right' },
  { title: 'WHEN', value: ({ atMs }) => moment(atMs) },
  { title: 'HOW', value: ({ kind }) => kind },
  { title: 'ERROR', value: ({ name, message }) => `${name}: ${message}`, cut: readable },
  { title: 'WORKER', value: ({ worker }) => worker, cut: true, spare: true },
];

function editLetter(dead: SluiceCommand): void {
  declare(dead, 'edit', 'Change the data of a dead letter; refused if somebody changed it meanwhile.')
    .argument('<queue>')
    .argument('<id>')
    .argument('[data]', 'JSON; - reads it from stdin; your editor ($VISUAL, $EDITOR) without it')
    .example('dead edit mail 0Ab3', 'in your editor')
    .example(`dead edit mail 0Ab3 '{"to":"ada@example.com"}' --replay`, 'then run it again')
    .option('--replay', 'run it again afterwards')
    .option(...dryRunOption)
    .completing('queue')
    .runs(
      async (
        context,
        flags: { replay?: boolean } & ChangeOptions,
        queue: string,
        id: string,
        given?: string,
      ) => {
        const { api, out, stdin } = context;
        const path = pathOf`/v1/queues/${queue}/dead/${id}`;
        const reply = await api.open('GET', path);
        const letter = (await reply.json()) as DeadLetter;
        const data =
          given === undefined
            ? await inEditor(context, letter.data)
            : parseJson(await textFrom(given, stdin));
        if (flags.dryRun)
          return out.would({ queue, id, data }, `${queue} ${id}: would become ${JSON.stringify(data)}`);
        if (JSON.stringify(data) === JSON.stringify(letter.data))
          out.did({ queue, id, edited: false }, `${queue} ${id}: the data are as they were`);
        else {
          const headers = { 'If-Match': reply.header('etag') ?? '*' };
          await api.ask('PATCH', path, { body: { data }, headers });
          out.did({ queue, id, edited: true }, `${queue} ${id}: changed`);
        }
        if (!flags.replay) return;
        await api.post(pathOf`/v1/queues/${queue}/jobs/${id}/replay`);
        out.did({ queue, id, replayed: true }, `${queue} ${id}: runs again`);
      },
    );
}

/** Only its owner can read the file: payloads are nobody else's business. */
async function inEditor(context: Context, data: unknown): Promise<unknown> {
  const { stdin, out } = context;
  if (!stdin.isTTY || !out.stdout.isTTY)
    throw cliErrors.USAGE({
      reason: 'there is no terminal for an editor; give the data as an argument, or - for stdin',
    });
  const folder = await mkdtemp(join(tmpdir(), 'sluice-edit-'));
  const file = join(folder, 'data.json');
  try {
    await writeFile(file, `${JSON.stringify(data, undefined, 2)}\n`, { mode: 0o600 });
    for (;;) {
      await edit(context, file);
      try {
        return parseJson(await readFile(file, 'utf8'));
      } catch (error) {
        // A comma too many must not cost what was written.
        out.warn((error as Error).message);
        await context.confirm('Edit it again?');
      }
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * The editor may have words of its own (`code --wait`), which the shell takes apart; the file is one argument, whatever its name. The shell
 * waits through a Ctrl-C, which is the editor's, and ends as the editor does.
 */
async function edit({ environment, lendTerminal }: Context, file: string): Promise<void> {
  const line = `trap : INT; ${environment.editor ?? 'vi'} "$1"`;
  const child = spawn('/bin/sh', ['-c', line, 'sh', file], { stdio: 'inherit' });
  const [code] = await lendTerminal(async () => (await once(child, 'close')) as [number | null]);
  if (code !== 0) throw cliErrors.NOT_CONFIRMED({ what: 'the editor ended with an error' });
}

interface MoveFlags extends FilterFlags, ChangeOptions {
  all?: boolean;
  perSecond?: number;
  detach?: boolean;
}

function moveCommand(
  dead: SluiceCommand,
  name: 'replay' | 'rm',
  action: 'replay' | 'discard',
  description: string,
): void {
  const command = declare(dead, name, description)
    .argument('<queue>')
    .argument('[id...]', 'ids; - reads them from stdin')
    .example(`dead ${name} mail 0Ab3 0Ab4`, 'two of them')
    .example(`dead ${name} mail --fingerprint 1f2e --dry-run`, 'how many it would be')
    .example(`dead ${name} mail --all --per-second 10 --yes`, 'all of them, slowly, without being asked')
    .option('--all', 'every dead letter of the queue')
    .option('--per-second <count>', 'not faster than this', parsePositive)
    .option('--detach', 'do not wait until it has ended')
    .option(...dryRunOption)
    .option(...yesOption)
    .completing('queue');
  filterOptions(command).runs(async (context, flags: MoveFlags, queue: string, given: string[]) => {
    const { api, out } = context;
    const choice = await choiceOf(flags, given, context);
    const path = pathOf`/v1/queues/${queue}/dead/${action}`;
    const rate = flags.perSecond === undefined ? {} : { perSecond: flags.perSecond };
    // Whoever has said yes already needs no count first.
    const plan =
      flags.yes && !flags.dryRun
        ? undefined
        : await api.post<OperationPreview>(path, { choice, dryRun: true });
    if (plan) {
      const what = `${counted(plan.total, 'dead letter')} of ${queue}`;
      if (flags.dryRun)
        return showPlan(out, plan, `${what} would ${name === 'rm' ? 'be deleted' : 'run again'}`);
      if (plan.total === 0) throw noLetter(queue);
      await context.confirm(name === 'rm' ? `Delete ${what} for good?` : `Run ${what} again?`);
    }
    const operation = await api.post<Operation>(path, { choice, ...rate });
    if (flags.detach) return out.one(operation, () => out.line(safeLine(operation.id)));
    const ended = await watch(context, operation.id);
    const isVain = ended.state === 'done' && ended.progress.moved === 0;
    if (!isVain || out.isJson) report(context, ended);
    if (isVain) throw noLetter(queue);
  });
}

function noLetter(queue: string): Error {
  return cliErrors.NONE({ what: `no dead letter of ${queue} matches` });
}

/** Ids, or a filter, or all: never all because nothing was said. */
async function choiceOf(flags: MoveFlags, given: string[], { stdin }: Context): Promise<unknown> {
  const filter = Object.fromEntries(
    Object.entries(filterOf(flags)).filter(([, value]) => value !== undefined),
  );
  const ways = [given.length > 0, Object.keys(filter).length > 0, flags.all === true].filter(Boolean).length;
  if (ways !== 1)
    throw cliErrors.USAGE({
      reason: 'say which letters: ids, or a filter (--fingerprint, --text, --since, --until), or --all',
    });
  if (flags.all) return 'all';
  return given.length > 0 ? { ids: await idsFrom(given, stdin) } : filter;
}

function showPlan(out: Context['out'], plan: OperationPreview, sentence: string): void {
  out.one(plan, () => {
    out.line(safeLine(sentence));
    for (const item of plan.sample ?? []) {
      out.line(safeLine(`  ${item.id}  ${ago(item.lastFailureMs)}  ${item.title}`));
    }
  });
}

function exportLetters(dead: SluiceCommand): void {
  const command = declare(dead, 'export', 'Dead letters as lines of JSON, all that match.')
    .argument('<queue>')
    .example('dead export mail > letters.ndjson', 'all of them')
    .example('dead export mail --since 1d | jq .error.message', 'of the last day')
    .completing('queue');
  filterOptions(command).runs(async ({ api, out }, flags: FilterFlags, queue: string) => {
    const reply = await api.open('GET', pathOf`/v1/queues/${queue}/dead/export`, { query: filterOf(flags) });
    // A character may come in two pieces.
    const decoder = new TextDecoder();
    for await (const part of api.bytesOf(reply))
      await out.bytes(Buffer.from(safeJson(decoder.decode(part, { stream: true }))));
  });
}
