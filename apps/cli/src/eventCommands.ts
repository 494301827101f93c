// `sluice events`: what happened, and what happens. Following asks again from where it was, so that a cut line loses nothing.
import { setTimeout as pause } from 'node:timers/promises';
import { declare, group, type SluiceCommand } from './command.js';
import type { Context } from './context.js';
import { exitCodes, exitCodeOf } from './exitCodes.js';
import { moment } from './human.js';
import { parseCount } from './parse.js';
import { safeLine } from './sanitise.js';
import { cutText, textWidth } from './textWidth.js';

interface EventRow {
  /** Its place in the stream: milliseconds and a number. */
  cursor: string;
  eventId: string;
  topic: string;
  key: string;
  data: Record<string, unknown>;
}

interface EventPage {
  items: EventRow[];
  next: string | null;
}

const lookMs = 1_000;
const awayMs = 5_000;
/** Less of the data says nothing. */
const leastData = 24;
const pageOfEvents = 500;
/** Before the first event of a stream. */
const beginning = '0';

interface TailFlags {
  follow: boolean;
  lines: number;
  topic?: string;
  after?: string;
}

export function eventCommands(program: SluiceCommand): void {
  const events = group(program, 'events', 'What happens to files and uploads.').example(
    'events tail',
    'the last ones, and those that come',
  );
  declare(events, 'tail', 'The last events, and those that come.')
    .example('events tail', 'until Ctrl-C')
    .example('events tail --no-follow -n 100', 'the last hundred')
    .example(
      'events tail --topic repository.documents. --json | jq .data',
      'topics that begin so, for a program',
    )
    .option('-n, --lines <count>', 'so many of those that are there', parseCount, 10)
    .option('--no-follow', 'do not wait for others')
    .option('--topic <topic>', 'only this, or all that begin with it when it ends with a dot')
    .option('--after <cursor>', 'those behind this place; 0 is the beginning')
    .runs((context, flags: TailFlags) => tail(context, flags));
}

async function tail(context: Context, flags: TailFlags): Promise<void> {
  const { out, signal } = context;
  const { topic, follow, lines } = flags;
  let at = flags.after ?? (await showLast(context, topic, lines));
  if (flags.after !== undefined) at = await showBehind(context, topic, at);
  while (follow) {
    await pause(lookMs, undefined, { signal });
    try {
      at = await showBehind(context, topic, at);
    } catch (error) {
      // Whoever follows waits for the server to come back.
      if (exitCodeOf(error) !== exitCodes.serverAway) throw error;
      out.say('the server is away; waiting for it');
      await pause(awayMs, undefined, { signal });
    }
  }
}

/** The last ones that are there, the oldest of them first. Returns where the stream ended. */
async function showLast(context: Context, topic: string | undefined, lines: number): Promise<string> {
  const newest = await context.api.get<EventPage>('/v1/events', { limit: 1 });
  const end = newest.items[0]?.cursor ?? beginning;
  const last: EventRow[] = [];
  let cursor: string | null = null;
  while (last.length < lines) {
    const limit = Math.min(pageOfEvents, lines - last.length);
    const page: EventPage = await context.api.get('/v1/events', { topic, limit, cursor });
    last.push(...page.items);
    cursor = page.next;
    if (cursor === null) break;
  }
  for (const event of last.toReversed()) print(context, event);
  if (last.length === 0) context.out.say('none');
  const seen = last[0]?.cursor ?? end;
  return isLater(seen, end) ? seen : end;
}

/** Returns how far it came. */
async function showBehind(context: Context, topic: string | undefined, after: string): Promise<string> {
  let at = after;
  for (;;) {
    const page = await context.api.get<EventPage>('/v1/events', { topic, after: at, limit: pageOfEvents });
    for (const event of page.items) print(context, event);
    const next = page.next ?? page.items.at(-1)?.cursor ?? at;
    if (next === at) return at;
    at = next;
  }
}

function print({ out }: Context, event: EventRow): void {
  if (out.isJson) return out.jsonLine(event);
  const { cursor, topic, data } = event;
  const when = moment(Number(cursor.split('-')[0]));
  const { colour, width = Infinity } = out;
  // On a terminal an event is one line, with as much of its data as has room there; --json has all of them.
  const room = width - textWidth(`${when}  ${topic}  `);
  const place = cutText(safeLine(placeOf(data)), room);
  const left = room - textWidth(`${place}  `);
  const rest = left >= leastData ? cutText(safeLine(JSON.stringify(data)), left) : '';
  const parts = [colour.dim(when), colour.cyan(safeLine(topic)), place, rest];
  out.line(parts.filter(Boolean).join('  '));
}

function placeOf({ drive, path }: Record<string, unknown>): string {
  return [drive, path].filter((part) => typeof part === 'string' && part !== '').join('/');
}

function isLater(cursor: string, than: string): boolean {
  const [ms = 0, number = 0] = cursor.split('-').map(Number);
  const [otherMs = 0, otherNumber = 0] = than.split('-').map(Number);
  return ms > otherMs || (ms === otherMs && number > otherNumber);
}
