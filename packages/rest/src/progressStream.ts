// Progress as server-sent events. The snapshot comes first; then every change with its number, so that a browser that reconnects
// goes on where it was (Last-Event-ID). Comments in between keep proxies from closing a quiet connection.
import type { Progress } from '@sluice/upload';
import type { Call } from './route.js';

const quietMs = 15_000;
const ends = new Set(['COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED']);

export async function streamProgress({ request, reply, parts }: Call, id: string): Promise<unknown> {
  const asked = request.headers['last-event-id'];
  const after = typeof asked === 'string' && /^\d{1,15}$/.test(asked) ? Number(asked) : undefined;
  const early: Progress[] = [];
  let say = (progress: Progress): void => void early.push(progress);
  const { snapshot, stop } = await parts.uploads.watch(id, (progress) => say(progress), after);
  for (const [name, value] of Object.entries(reply.getHeaders()))
    if (value !== undefined) reply.raw.setHeader(name, value);
  const { raw } = reply.hijack();
  raw.writeHead(200, {
    'Content-Type': 'text/event-stream; charset=utf-8',
    'Cache-Control': 'no-store',
    'X-Accel-Buffering': 'no',
  });
  const alive = setInterval(() => raw.write(': still here\n\n'), quietMs);
  const finish = (): void => {
    clearInterval(alive);
    stop();
    raw.end();
  };
  raw.once('close', finish);
  const send = async (event: 'snapshot' | 'progress', progress: Progress): Promise<void> => {
    const { sequence, ...rest } = progress;
    const isEnd = ends.has(progress.state);
    const view = isEnd ? await parts.uploads.status(id).catch(() => undefined) : undefined;
    const data = { ...rest, ...(view && { result: view.result, error: view.error }) };
    raw.write(`event: ${event}\nid: ${sequence}\ndata: ${JSON.stringify(data)}\n\n`);
    if (isEnd) finish();
  };
  // What is already over has nothing to follow, unless the client is still to hear how it went.
  void send('snapshot', snapshot);
  say = (progress) => void send('progress', progress);
  early.forEach(say);
  return reply;
}
