// `sluice trace`: from any id along the way, the whole way: upload → record → event → job → result.
import { pathOf } from './api.js';
import { declare, type SluiceCommand } from './command.js';
import type { Context } from './context.js';
import { bytes, count, moment } from './human.js';
import type { NodeReply } from './place.js';
import { safeLine } from './sanitise.js';
import { wrapText } from './textWidth.js';

/** Of what stands below a step. */
const indent = 5;

interface Trace {
  id: string;
  kind: string;
  upload: {
    record: {
      id: string;
      path: string;
      status: string;
      reason: string | null;
      createdAt: string;
      endedAt: string | null;
    } | null;
    live: { id: string; state: string; size: number | null; receivedBytes: number } | null;
  } | null;
  node: (NodeReply & { version?: number }) | null;
  events: { cursor: string; eventId: string; topic: string }[];
  waitingEvents: number;
  jobs: {
    queue: string;
    id: string;
    state: string;
    createdMs?: number;
    attempt?: number;
    result?: unknown;
    error?: string;
  }[];
  bounds: { events: { scanned: number; complete: boolean }; jobs: { scanned: number; complete: boolean } };
}

interface Step {
  kind: string;
  id: string;
  state: string;
  at?: string | number | undefined;
  more?: string | undefined;
}

export function traceCommand(program: SluiceCommand): void {
  declare(program, 'trace', 'Follow one id: upload, file, event, job, result.')
    .argument('<id>', 'of an upload, a file, an event or a job')
    .example('trace 2Xk9', 'the whole way, from any id on it')
    .runs(async ({ api, out }, _flags: object, id: string) => {
      const trace = await api.get<Trace>(pathOf`/v1/trace/${id}`);
      out.one(trace, () => print(out, trace));
    });
}

function print(out: Context['out'], trace: Trace): void {
  const { colour } = out;
  const steps = stepsOf(trace);
  for (const [i, { kind, id, state, at, more }] of steps.entries()) {
    const isLast = i === steps.length - 1;
    out.line(`${isLast ? '└─' : '├─'} ${colour.bold(kind)}  ${safeLine(id)}  ${safeLine(state)}`);
    const details = [at === undefined ? '' : moment(at), more ?? ''].filter(Boolean).join('  ');
    const room = (out.width ?? Infinity) - indent;
    for (const line of details === '' ? [] : wrapText(safeLine(details), room))
      out.line(`${isLast ? '  ' : '│ '}   ${colour.dim(line)}`);
  }
  const { events, jobs } = trace.bounds;
  if (!events.complete) out.say(`only the newest ${count(events.scanned)} events were looked through`);
  if (!jobs.complete) out.say(`only ${count(jobs.scanned)} jobs were looked through`);
}

function stepsOf({ upload, node, events, waitingEvents, jobs }: Trace): Step[] {
  const steps: Step[] = [];
  const { record, live } = upload ?? {};
  if (record)
    steps.push({
      kind: 'upload',
      id: record.id,
      state: record.status.toLowerCase(),
      at: record.endedAt ?? record.createdAt,
      more: [record.path, record.reason ?? ''].filter(Boolean).join(': '),
    });
  else if (live)
    steps.push({
      kind: 'upload',
      id: live.id,
      state: live.state.toLowerCase(),
      more: `${bytes(live.receivedBytes)} of ${bytes(live.size)}`,
    });
  if (node)
    steps.push({
      kind: 'file',
      id: node.id,
      state: node.status.toLowerCase(),
      at: node.updatedAt,
      more: `${node.path}, ${bytes(node.size)}${node.version === undefined ? '' : `, version ${node.version}`}`,
    });
  for (const { cursor, eventId, topic } of events)
    steps.push({
      kind: 'event',
      id: eventId,
      state: 'published',
      at: Number(cursor.split('-')[0]),
      more: topic,
    });
  if (waitingEvents > 0)
    steps.push({ kind: 'event', id: count(waitingEvents), state: 'waiting to be published' });
  for (const { queue, id, state, createdMs, attempt, result, error } of jobs) {
    const tries = attempt === undefined ? '' : `, attempt ${attempt}`;
    const outcome =
      error ?? (result === undefined || result === null ? '' : `result ${JSON.stringify(result)}`);
    steps.push({
      kind: 'job',
      id,
      state,
      at: createdMs,
      more: [`queue ${queue}${tries}`, outcome].filter(Boolean).join(': '),
    });
  }
  return steps;
}
