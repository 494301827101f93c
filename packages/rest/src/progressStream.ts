// Progress as server-sent events. The snapshot comes first; then every change with its number, so that a browser that reconnects
// goes on where it was (Last-Event-ID). Comments in between keep proxies from closing a quiet connection.
import type { ServerResponse } from 'node:http';
import type { Progress } from '@sluice/upload';
import type { Call } from './route.js';

const quietMs = 15_000;
/** A client that does not read has this much waiting for it; then it is cut, and may come back. */
const unreadBytes = 1_048_576;
const ends = new Set(['COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED']);

export async function streamProgress({ request, reply, parts }: Call, id: string): Promise<unknown> {
  const asked = request.headers['last-event-id'];
  const after = typeof asked === 'string' && /^\d{1,15}$/.test(asked) ? Number(asked) : undefined;
  const early: Progress[] = [];
  let say = (progress: Progress): void => void early.push(progress);
  const { snapshot, stop } = await parts.uploads.watch(id, (progress) => say(progress), after);
  const raw = beginStream(reply);
  const alive = setInterval(() => write(raw, ': still here\n\n'), quietMs);
  const finish = (): void => {
    clearInterval(alive);
    stop();
    if (!raw.writableEnded) raw.end();
  };
  raw.once('close', finish);
  const send = async (event: 'snapshot' | 'progress', progress: Progress): Promise<void> => {
    const { sequence, ...rest } = progress;
    const isEnd = ends.has(progress.state);
    const view = isEnd ? await parts.uploads.status(id).catch(() => undefined) : undefined;
    const data = { ...rest, ...(view && { result: view.result, error: view.error }) };
    write(raw, `event: ${event}\nid: ${sequence}\ndata: ${JSON.stringify(data)}\n\n`);
    if (isEnd) finish();
  };
  // One after the other: the end asks for the result before it is told, and nothing may overtake it.
  let sent = send('snapshot', snapshot);
  say = (progress) => {
    sent = sent.then(() => send('progress', progress));
  };
  early.forEach(say);
  return reply;
}

function beginStream(reply: Call['reply']): ServerResponse {
  for (const [name, value] of Object.entries(reply.getHeaders()))
    if (value !== undefined) reply.raw.setHeader(name, value);
  const { raw } = reply.hijack();
  raw.writeHead(200, {
    'Content-Type': 'text/event-stream; charset=utf-8',
    'Cache-Control': 'no-store',
    'X-Accel-Buffering': 'no',
  });
  return raw;
}

function write(raw: ServerResponse, text: string): void {
  if (raw.writableEnded || raw.destroyed) return;
  if (raw.writableLength > unreadBytes) raw.destroy();
  else raw.write(text);
}
