// `sluice top`: the installation as it is now, again and again. On a terminal it takes the other screen, follows its size, and gives
// everything back at the end: q, Ctrl-C, or a crash. Elsewhere each look is a line per queue, for a log.
import { setTimeout as pause } from 'node:timers/promises';
import { Option } from 'commander';
import { declare, type SluiceCommand } from './command.js';
import type { Context } from './context.js';
import { exitCodes, exitCodeOf } from './exitCodes.js';
import { count, duration, moment } from './human.js';
import { attentionText, summaryOf } from './overview.js';
import { parsePositive, parseSpan } from './parse.js';
import { queueColumns } from './queueCommands.js';
import type { Overview, QueueSnapshot } from './replies.js';
import { safeLine } from './sanitise.js';
import { renderPairs, renderTable } from './table.js';
import { cutText } from './textWidth.js';

interface TopFlags {
  every: number;
  count?: number;
  sort: string;
}

const enter = '\x1b[?1049h\x1b[?25l';
const leave = '\x1b[?25h\x1b[?1049l';
const home = '\x1b[H';
const eraseLine = '\x1b[K';
const eraseBelow = '\x1b[J';
/** Our own codes, which take no columns. */
const escapes = new RegExp(`${String.fromCharCode(27)}\\[[0-9;?]*[a-zA-Z]`, 'g');

const orders: Record<string, (a: QueueSnapshot, b: QueueSnapshot) => number> = {
  name: (a, b) => (a.name < b.name ? -1 : 1),
  waiting: (a, b) => b.counts.waiting - a.counts.waiting,
  active: (a, b) => b.counts.active - a.counts.active,
  dead: (a, b) => b.counts.dead - a.counts.dead,
  oldest: (a, b) => b.counts.oldestWaitingMs - a.counts.oldestWaitingMs,
};
const orderNames = Object.keys(orders);

export function topCommand(program: SluiceCommand): void {
  declare(
    program,
    'top',
    'The installation as it is now, again and again. q quits, s sorts, space stops and goes on.',
  )
    .example('top', 'every two seconds')
    .example('top --every 10s | tee top.log', 'lines for a log')
    .example('top --count 1 --json', 'once, for a program')
    .option('--every <span>', 'so often', parseSpan, 2_000)
    .option('--count <looks>', 'so many looks, then end', parsePositive)
    .addOption(new Option('--sort <column>', 'order of the queues').choices(orderNames).default('name'))
    .runs((context, flags: TopFlags) => {
      const isScreen = context.out.stdout.isTTY && context.stdin.isTTY && !context.out.isJson;
      return isScreen ? onScreen(context, flags) : asLines(context, flags);
    });
}

async function asLines({ api, out, signal }: Context, flags: TopFlags): Promise<void> {
  for (let look = 1; ; look++) {
    const overview = await api.get<Overview>('/v1/overview');
    if (out.isJson) out.jsonLine(overview);
    else for (const line of plainLines(overview)) out.line(line);
    if (flags.count !== undefined && look >= flags.count) return;
    await pause(flags.every, undefined, { signal });
  }
}

function plainLines({ atMs, queues = [] }: Overview): string[] {
  const when = moment(atMs);
  return queues.map(({ name, paused, counts, rates }) =>
    [
      when,
      safeLine(name),
      paused ? 'paused' : 'running',
      `waiting=${counts.waiting} active=${counts.active} delayed=${counts.delayed} dead=${counts.dead}`,
      `workers=${counts.workers} oldest="${duration(counts.oldestWaitingMs)}" done/s=${count(rates?.done)}`,
    ].join(' '),
  );
}

interface View {
  overview?: Overview;
  problem?: string;
  sort: string;
  isStill: boolean;
}

async function onScreen(context: Context, flags: TopFlags): Promise<void> {
  const { out, stdin, signal } = context;
  const view: View = { sort: flags.sort, isStill: false };
  const end = new AbortController();
  const both = AbortSignal.any([end.signal, signal]);
  const draw = (): void => void out.stdout.write(frame(context, view));
  const restore = (): void => void out.stdout.write(leave);
  const keys = (bytes: Buffer): void => {
    for (const key of bytes.toString()) {
      if (key === 'q' || key === '\x03' || key === '\x04') end.abort();
      else if (key === 's') view.sort = orderNames[(orderNames.indexOf(view.sort) + 1) % orderNames.length]!;
      else if (key === ' ') view.isStill = !view.isStill;
    }
    if (!both.aborted) draw();
  };
  const terminal = stdin as NodeJS.ReadStream;
  out.stdout.write(enter);
  process.once('exit', restore);
  out.stdout.on('resize', draw);
  terminal.setRawMode(true);
  terminal.resume();
  terminal.on('data', keys);
  try {
    for (let look = 1; !both.aborted; look++) {
      if (!view.isStill) await refresh(context, view);
      draw();
      if (flags.count !== undefined && look >= flags.count) return;
      await pause(flags.every, undefined, { signal: both }).catch(() => undefined);
    }
  } finally {
    terminal.off('data', keys);
    terminal.setRawMode(false);
    terminal.pause();
    out.stdout.off('resize', draw);
    process.off('exit', restore);
    restore();
  }
  signal.throwIfAborted();
}

/** An outage is shown, with the last figures below it; a refusal ends the view. */
async function refresh({ api, signal }: Context, view: View): Promise<void> {
  try {
    view.overview = await api.get<Overview>('/v1/overview');
    delete view.problem;
  } catch (error) {
    if (signal.aborted) return;
    if (exitCodeOf(error) !== exitCodes.serverAway) throw error;
    view.problem = (error as Error).message;
  }
}

function frame(context: Context, view: View): string {
  const { out, api } = context;
  const { colour } = out;
  const [columns, rows] = [out.stdout.columns ?? 80, out.stdout.rows ?? 24];
  const { overview } = view;
  const state =
    view.problem === undefined
      ? view.isStill
        ? colour.yellow('still')
        : colour.green('live')
      : colour.red('away');
  const lines = [
    `${colour.bold('sluice top')}  ${safeLine(api.url)}  ${state}  ${overview ? moment(overview.atMs) : ''}`,
  ];
  if (view.problem !== undefined) lines.push(colour.red(safeLine(view.problem)));
  if (overview) lines.push(...body(context, overview, view, columns, rows - lines.length - 2));
  const shown = lines.slice(0, rows - 1).map((line) => fit(line, columns) + eraseLine);
  const foot = colour.dim(cutText(`q quit  s sort (${view.sort})  space stop and go`, columns));
  const gap = Array.from({ length: Math.max(0, rows - 1 - shown.length) }, () => eraseLine);
  return home + [...shown, ...gap, foot + eraseLine].join('\r\n') + eraseBelow;
}

function body({ out }: Context, overview: Overview, { sort }: View, columns: number, room: number): string[] {
  const { colour } = out;
  const attention = (overview.attention ?? []).map(attentionText);
  const warnings = attention.map((text) => `${colour.yellow('!')} ${safeLine(text)}`);
  // A line each, whatever the width: what is cut is in `status`.
  const summary = renderPairs(summaryOf(overview), { colour, width: undefined });
  const queues = [...(overview.queues ?? [])].sort(orders[sort]);
  const table = renderTable(queueColumns, queues, { colour, width: columns });
  const left = Math.max(2, room - summary.length - warnings.length - 2);
  const hidden = table.length - left;
  const cut = hidden > 0 ? [...table.slice(0, left - 1), colour.dim(`… ${hidden + 1} more queues`)] : table;
  return [...summary, ...warnings, '', ...cut];
}

/** A line that is too long loses its colours with its end. */
function fit(line: string, columns: number): string {
  const plain = line.replaceAll(escapes, '');
  return plain.length <= columns ? line : cutText(plain, columns);
}
