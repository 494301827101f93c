/**
 * Waiting until the server is done with what it has got. Server-sent events tell of the end at once, or of bytes that were lost
 * meanwhile; where they do not come through (a proxy that buffers, a server that has them switched off) the status is asked for,
 * ever less often. However good the events are, now and then the status is asked for: it alone names what is missing.
 */
import { isObject, Leash } from './connection.js';
import { pathOf } from './protocol.js';
import type { Protocol, UploadResult, UploadView } from './protocol.js';
import { sleep } from './retry.js';
import type { Patience } from './retry.js';

const FIRST_POLL_MS = 100;
const SLOWEST_POLL_MS = 5_000;
const LISTEN_MS = 5_000;
/** An event that does not end within so many characters is not one of ours. */
const MAX_EVENT_CHARACTERS = 65_536;

type Heard = { result: UploadResult } | 'news' | 'nothing' | 'no events';

export class Ending {
  #eventsHelp = true;
  #pollMs = FIRST_POLL_MS;

  /** Returns the view when it may have changed: at the end, or when it is time to look. */
  async next(
    protocol: Protocol,
    patience: Patience,
    view: UploadView,
    signal: AbortSignal,
  ): Promise<UploadView> {
    const heard = this.#eventsHelp ? await listen(protocol, view.id, signal) : await this.#pause(signal);
    if (typeof heard === 'object') return { ...view, state: 'COMPLETED', missing: [], result: heard.result };
    const now = await patience.persist(signal, () => protocol.status(view.id, signal));
    // Events that fail, or tell of what the status does not confirm, would be listened to without a rest.
    if (heard !== 'nothing' && isWaiting(now)) this.#eventsHelp = false;
    return now;
  }

  async #pause(signal: AbortSignal): Promise<Heard> {
    await sleep(this.#pollMs, signal);
    this.#pollMs = Math.min(SLOWEST_POLL_MS, this.#pollMs * 2);
    return 'nothing';
  }
}

function isWaiting({ state, missing }: UploadView): boolean {
  return state === 'COMPLETING' || (state === 'UPLOADING' && missing.length === 0);
}

/** Listens for a while: until the end, until bytes are missing again, or until the events fail. */
async function listen(protocol: Protocol, id: string, signal: AbortSignal): Promise<Heard> {
  const leash = new Leash(signal, 0, LISTEN_MS);
  try {
    const path = `${pathOf(id)}/events`;
    const headers = { accept: 'text/event-stream' };
    const response = await protocol.connection.open({ method: 'GET', path, headers, signal }, leash.signal);
    for await (const event of eventsIn(response)) {
      const heard = meaningOf(event);
      if (heard !== 'nothing') return heard;
    }
    return 'no events';
  } catch {
    signal.throwIfAborted();
    // Whatever it was, the status is asked for next, and knows better.
    return leash.signal.aborted ? 'nothing' : 'no events';
  } finally {
    leash.release();
  }
}

function meaningOf({ state, result, size, receivedBytes }: Record<string, unknown>): Heard {
  if (state === 'COMPLETED' && isObject(result)) return { result: result as unknown as UploadResult };
  const isUnderWay = state === 'PENDING' || state === 'UPLOADING' || state === 'COMPLETING';
  const lacksBytes = state === 'UPLOADING' && typeof size === 'number' && Number(receivedBytes) < size;
  return isUnderWay && !lacksBytes ? 'nothing' : 'news';
}

async function* eventsIn(response: Response): AsyncGenerator<Record<string, unknown>> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = '';
  while (reader && text.length <= MAX_EVENT_CHARACTERS) {
    const { done, value } = await reader.read();
    if (done) return;
    text += decoder.decode(value as Uint8Array, { stream: true }).replaceAll('\r', '');
    const events = text.split('\n\n');
    text = events.pop()!;
    for (const event of events) {
      const data = /^data: ?(.*)$/m.exec(event)?.[1];
      const told: unknown = data === undefined ? undefined : JSON.parse(data);
      if (isObject(told)) yield told;
    }
  }
}
