/**
 * Waiting until the server is done with what it has got. Server-sent events tell of the end at once; where they do not come
 * through (a proxy that buffers, a server that has them switched off) the status is asked for, ever less often.
 */
import { isObject, Leash } from './connection.js';
import { pathOf } from './protocol.js';
import type { Protocol, UploadView } from './protocol.js';
import { sleep } from './retry.js';
import type { Patience } from './retry.js';

const FIRST_POLL_MS = 100;
const SLOWEST_POLL_MS = 5_000;
/** Without a word for so long the events are taken for dead, and the status is asked for. */
const SILENCE_MS = 15_000;
/** An event that does not end within so many characters is not one of ours. */
const MAX_EVENT_CHARACTERS = 65_536;

export class Ending {
  #eventsHelp = true;
  #pollMs = FIRST_POLL_MS;

  /** Returns the view when it may have changed: at the end, or when it is time to look. */
  async next(protocol: Protocol, patience: Patience, id: string, signal: AbortSignal): Promise<UploadView> {
    if (this.#eventsHelp) await hearOfChange(protocol, id, signal);
    else {
      await sleep(this.#pollMs, signal);
      this.#pollMs = Math.min(SLOWEST_POLL_MS, this.#pollMs * 2);
    }
    const view = await patience.persist(signal, () => protocol.status(id, signal));
    if (view.state === 'COMPLETING') this.#eventsHelp = false;
    return view;
  }
}

/** Listens until the upload is no longer completing, or the events end, fail or fall silent. */
async function hearOfChange(protocol: Protocol, id: string, signal: AbortSignal): Promise<void> {
  const leash = new Leash(signal, 0, SILENCE_MS);
  try {
    const path = `${pathOf(id)}/events`;
    const headers = { accept: 'text/event-stream' };
    const response = await protocol.connection.open({ method: 'GET', path, headers, signal }, leash.signal);
    for await (const state of statesIn(response, leash)) if (state !== 'COMPLETING') return;
  } catch {
    // Whatever it was, the status is asked for next, and knows better.
    signal.throwIfAborted();
  } finally {
    leash.release();
  }
}

async function* statesIn(response: Response, leash: Leash): AsyncGenerator {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = '';
  while (reader && text.length <= MAX_EVENT_CHARACTERS) {
    const { done, value } = await reader.read();
    if (done) return;
    // A comment is a sign of life too.
    leash.extend(SILENCE_MS);
    text += decoder.decode(value as Uint8Array, { stream: true }).replaceAll('\r', '');
    const events = text.split('\n\n');
    text = events.pop()!;
    for (const event of events) {
      const data = /^data: ?(.*)$/m.exec(event)?.[1];
      const told: unknown = data === undefined ? undefined : JSON.parse(data);
      if (isObject(told)) yield told['state'];
    }
  }
}
