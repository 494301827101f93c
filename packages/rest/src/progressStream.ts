// Progress of one upload as server-sent events. The snapshot comes first; then every change with its number, so that a browser that
// reconnects goes on where it was (Last-Event-ID): it gets what it missed and no snapshot, which would be ahead of that. Who was away for
// too long, or comes back to an upload that is over, begins with a snapshot again.
import type { Progress } from '@sluice/upload';
import type { EventStream } from './eventStream.js';
import { openStream } from './openStream.js';
import type { Call } from './route.js';

const ends = new Set(['COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED']);

export async function streamProgress(call: Call, id: string): Promise<unknown> {
  const { request, reply, parts } = call;
  const asked = request.headers['last-event-id'];
  const after = typeof asked === 'string' && /^\d{1,15}$/.test(asked) ? Number(asked) : undefined;
  const early: Progress[] = [];
  let say = (progress: Progress): void => void early.push(progress);
  const { snapshot, resumes, stop } = await parts.uploads.watch(id, (progress) => say(progress), after);
  let stream: EventStream;
  try {
    stream = openStream(call, stop);
  } catch (error) {
    stop();
    throw error;
  }
  const send = async (event: 'snapshot' | 'progress', progress: Progress): Promise<void> => {
    const { sequence, ...rest } = progress;
    const isEnd = ends.has(progress.state);
    const view = isEnd ? await parts.uploads.status(id).catch(() => undefined) : undefined;
    stream.send(event, { ...rest, ...(view && { result: view.result, error: view.error }) }, sequence);
    if (isEnd) {
      stop();
      stream.end();
    }
  };
  // One after the other: the end asks for the result before it is told, and nothing may overtake it.
  let sent = resumes && !ends.has(snapshot.state) ? Promise.resolve() : send('snapshot', snapshot);
  say = (progress) => {
    sent = sent.then(() => send('progress', progress));
  };
  early.forEach(say);
  return reply;
}
