/**
 * One stream of live updates that goes on for as long as it is wanted: it reconnects after every end, sooner at first and later when that
 * does not help, and says Last-Event-ID, so that the server sends what was missed. It ends by itself only when it is refused.
 *
 *     connecting → connected ⇄ reconnecting
 *          └───────────┴─────────────┴──→ refused
 *
 * The server says something every fifteen seconds. A connection on which nothing comes for longer than the patience is dead, whatever the
 * network claims.
 */
import { eventReader, type ServerSentEvent } from './serverSentEvents.js';

export type LiveState = 'connecting' | 'connected' | 'reconnecting' | 'refused';

export interface LiveStreamOptions {
  url: string;
  headers: () => Record<string, string>;
  patienceMs: number;
  onEvent: (event: ServerSentEvent) => void;
  onState: (state: LiveState, status?: number) => void;
  /** Something came, be it only a sign of life. */
  onBeat: () => void;
}

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 20_000;
/** Asking again soon cannot help: no key, no permission, no such address. */
const isRefusal = (status: number): boolean => [400, 401, 403, 404, 405].includes(status);

export class LiveStream {
  readonly #options: LiveStreamOptions;
  readonly #end = new AbortController();
  #last: string | undefined;
  #wake: () => void = () => {};

  constructor(options: LiveStreamOptions, last: string | undefined) {
    this.#options = options;
    this.#last = last;
    void this.#run();
  }

  stop(): void {
    this.#end.abort();
    this.#wake();
  }

  /** The network is back, or somebody looks: now is a good time. */
  hurry(): void {
    this.#wake();
  }

  async #run(): Promise<void> {
    const { onState } = this.#options;
    const { signal } = this.#end;
    let failures = 0;
    while (!signal.aborted) {
      const { status, heard, askedMs } = await this.#connect();
      if (signal.aborted) return;
      if (isRefusal(status)) return onState('refused', status);
      onState('reconnecting', status);
      failures = heard ? 0 : failures + 1;
      // At random within a bound that doubles: the tabs of many people do not come back in step.
      const boundMs = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures);
      await this.#pause(Math.max(askedMs, boundMs / 2 + (Math.random() * boundMs) / 2));
    }
  }

  /** Resolves when the connection has ended, however it did. */
  async #connect(): Promise<{ status: number; heard: boolean; askedMs: number }> {
    const { url, headers, patienceMs, onState, onBeat, onEvent } = this.#options;
    const attempt = new AbortController();
    const abort = (): void => attempt.abort();
    this.#end.signal.addEventListener('abort', abort);
    let silence = setTimeout(abort, patienceMs);
    let [status, heard, askedMs] = [0, false, 0];
    try {
      const reply = await fetch(url, {
        headers: {
          Accept: 'text/event-stream',
          ...headers(),
          ...(this.#last && { 'Last-Event-ID': this.#last }),
        },
        signal: attempt.signal,
      });
      ({ status } = reply);
      askedMs = Number(reply.headers.get('Retry-After') ?? 0) * 1_000 || 0;
      if (!reply.ok || !reply.body) return { status, heard, askedMs };
      onState('connected');
      const read = eventReader((event) => {
        this.#last = event.id ?? this.#last;
        onEvent(event);
      });
      const decoder = new TextDecoder();
      const reader = reply.body.getReader();
      for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
        heard = true;
        clearTimeout(silence);
        silence = setTimeout(abort, patienceMs);
        onBeat();
        read(decoder.decode(piece.value, { stream: true }));
      }
    } catch {
      // A network that is away, a server that restarts, or our own wish: what follows is the same.
    } finally {
      clearTimeout(silence);
      this.#end.signal.removeEventListener('abort', abort);
      attempt.abort();
    }
    return { status, heard, askedMs };
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
