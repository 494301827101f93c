/**
 * Live updates for pages, one stream for all tabs of a browser.
 *
 * A browser opens six connections to a host over HTTP/1.1, and a stream keeps one for good: the seventh tab would wait for ever, and so
 * would every request of the others. So one tab holds the stream and tells the rest.
 *
 *   election   whoever holds the Web Lock of the address leads. When that tab closes or crashes, the browser hands the lock to the next.
 *   fan-out    what comes is posted on a BroadcastChannel; newcomers say hello and get the state and the latest snapshots.
 *   takeover   the new leader asks the others for the last event that they have, and goes on after the oldest of these. What a tab has
 *              had already is recognised by its id, so nothing is missed and nothing is told twice.
 *   freezing   a tab that is frozen or put aside gives the lead away. A leader that hangs is noticed by its silence; the lock is taken
 *              from it. A tab that comes back takes the lead, because the server then sends what it has missed.
 *
 * Without Web Locks (pages that were not loaded over https) each tab has a stream of its own while it can be seen.
 */
import { LiveStream, type LiveState } from './liveStream.js';
import type { ServerSentEvent } from './serverSentEvents.js';

export type { LiveState } from './liveStream.js';

export interface LiveOptions {
  /** The address of the stream, `/v1/live?topics=overview,events`. Tabs with the same address share one. */
  url: string;
  /** An update: the topic, what it says, and for events where they are in the order of all. */
  onUpdate: (topic: string, data: unknown, id?: string) => void;
  onState?: (state: LiveState, status?: number) => void;
  /** For pages that do not use a session cookie. */
  headers?: () => Record<string, string>;
  /** A leader or a connection that is silent for longer is given up; 45 s. The server says something every 15 s. */
  patienceMs?: number;
}

export interface LiveWatch {
  readonly state: LiveState;
  /** Whether the stream is held by this tab. */
  readonly leads: boolean;
  /** Tries again at once, for example after signing in. */
  retry(): void;
  close(): void;
}

/** What tabs tell each other. `to` is for one of them. */
type Note =
  | { kind: 'update'; update: ServerSentEvent; to?: string }
  | { kind: 'state'; state: LiveState; status: number | undefined; to?: string }
  | { kind: 'beat' | 'retry' | 'ask' }
  | { kind: 'hello'; from: string }
  | { kind: 'last'; id: string };

/** The parts of a browser that are used; Node has no such types. */
interface Page {
  navigator?: { locks?: Locks };
  document?: EventTarget & { visibilityState: string };
  BroadcastChannel?: new (name: string) => Channel;
  addEventListener?: EventTarget['addEventListener'];
  removeEventListener?: EventTarget['removeEventListener'];
}

interface Locks {
  request(
    name: string,
    options: { steal?: true; signal?: AbortSignal },
    hold: () => Promise<void>,
  ): Promise<void>;
  query(): Promise<{ pending?: { name?: string }[] }>;
}

interface Channel {
  addEventListener(name: 'message', hear: (message: { data: unknown }) => void): void;
  postMessage(note: Note): void;
  close(): void;
}

const USUAL_PATIENCE_MS = 45_000;
/** How long a new leader waits for the others to say what they have. */
const ANSWERS_MS = 150;
/** More than the server sends to somebody who was away. */
const IDS_KEPT = 2_000;

export function live(options: LiveOptions): LiveWatch {
  const watch = new LiveTab(options);
  watch.open();
  return watch;
}

class LiveTab implements LiveWatch {
  state: LiveState = 'connecting';
  readonly #options: LiveOptions;
  readonly #patienceMs: number;
  readonly #page = globalThis as unknown as Page;
  readonly #name: string;
  readonly #self = Math.random().toString(36).slice(2);
  readonly #closed = new AbortController();
  readonly #snapshots = new Map<string, ServerSentEvent>();
  readonly #had = new Set<string>();
  #channel: Channel | undefined;
  #stream: LiveStream | undefined;
  #last: string | undefined;
  /** What the others have, while a new leader asks. */
  #lasts: string[] = [];
  /** Counts candidacies: whatever belongs to an earlier one has no say any more. */
  #term = 0;
  #giveUp: () => void = () => {};
  #heardAt = performance.now();
  #pulse: ReturnType<typeof setInterval> | undefined;

  constructor(options: LiveOptions) {
    this.#options = options;
    this.#patienceMs = options.patienceMs ?? USUAL_PATIENCE_MS;
    this.#name = `sluice-live ${options.url}`;
  }

  get leads(): boolean {
    return this.#stream !== undefined;
  }

  open(): void {
    const { document, BroadcastChannel, navigator } = this.#page;
    const isShared = navigator?.locks !== undefined && BroadcastChannel !== undefined;
    if (isShared) {
      this.#channel = new BroadcastChannel(this.#name);
      this.#channel.addEventListener('message', ({ data }) => this.#hear(data as Note));
      this.#post({ kind: 'hello', from: this.#self });
      this.#pulse = setInterval(() => this.#beat(), this.#patienceMs / 3);
      this.#stand();
      this.#on(document, 'freeze', () => this.#leave());
      this.#on(this.#page, 'pagehide', () => this.#leave());
      this.#on(document, 'resume', () => this.#stand(true));
      this.#on(this.#page, 'pageshow', (event) => {
        if ((event as Event & { persisted?: boolean }).persisted) this.#stand(true);
      });
    } else this.#lead();
    this.#on(this.#page, 'online', () => this.#stream?.hurry());
    this.#on(document, 'visibilitychange', () => {
      const isSeen = document?.visibilityState === 'visible';
      if (isSeen) this.#stream?.hurry();
      if (isShared) return;
      if (!isSeen) this.#endStream();
      else if (!this.#stream) this.#lead();
    });
  }

  retry(): void {
    if (!this.leads) return this.#post({ kind: 'retry' });
    if (this.state !== 'refused') return this.#stream!.hurry();
    this.#endStream();
    this.#lead();
  }

  close(): void {
    this.#closed.abort();
    clearInterval(this.#pulse);
    this.#leave();
    this.#channel?.close();
    this.#channel = undefined;
  }

  /** Waits for the lead, or takes it from whoever has it. */
  #stand(steal = false): void {
    this.#leave();
    if (this.#closed.signal.aborted) return;
    const term = ++this.#term;
    const queue = new AbortController();
    this.#giveUp = () => queue.abort();
    this.#heardAt = performance.now();
    this.#page
      .navigator!.locks!.request(this.#name, steal ? { steal } : { signal: queue.signal }, () =>
        this.#reign(term),
      )
      // Taken by another tab, or given up.
      .catch(() => {})
      .finally(() => {
        if (term === this.#term) this.#stand();
      });
  }

  async #reign(term: number): Promise<void> {
    const isOver = (): boolean => term !== this.#term;
    if (isOver()) return;
    const end = new Promise<void>((resolve) => {
      this.#giveUp = resolve;
    });
    const { pending = [] } = await this.#page.navigator!.locks!.query();
    if (pending.some(({ name }) => name === this.#name)) {
      this.#lasts = [];
      this.#post({ kind: 'ask' });
      await new Promise((resolve) => setTimeout(resolve, ANSWERS_MS));
    }
    if (isOver()) return;
    this.#last = [...this.#lasts, ...(this.#last === undefined ? [] : [this.#last])].sort(byAge)[0];
    this.#lead();
    await end;
  }

  #leave(): void {
    this.#term += 1;
    this.#endStream();
    this.#giveUp();
  }

  #lead(): void {
    const { url, headers = () => ({}) } = this.#options;
    const say = (state: LiveState, status?: number): void => {
      this.#setState(state, status);
      this.#post({ kind: 'state', state, status });
    };
    this.#stream = new LiveStream(
      {
        url,
        headers,
        patienceMs: this.#patienceMs,
        onState: say,
        onBeat: () => this.#post({ kind: 'beat' }),
        onEvent: (update) => {
          this.#post({ kind: 'update', update });
          this.#take(update);
        },
      },
      this.#last,
    );
  }

  #endStream(): void {
    this.#stream?.stop();
    this.#stream = undefined;
  }

  #hear(note: Note): void {
    if ('to' in note && note.to !== undefined && note.to !== this.#self) return;
    this.#heardAt = performance.now();
    switch (note.kind) {
      case 'update':
        return this.#take(note.update);
      case 'state':
        if (!this.leads) this.#setState(note.state, note.status);
        return;
      case 'ask':
        if (this.#last !== undefined) this.#post({ kind: 'last', id: this.#last });
        return;
      case 'last':
        this.#lasts.push(note.id);
        return;
      case 'hello':
        if (this.leads) this.#welcome(note.from);
        return;
      case 'retry':
        if (this.leads) this.retry();
        return;
      case 'beat':
    }
  }

  #welcome(to: string): void {
    // A new tab may mean that somebody has signed in.
    if (this.state === 'refused') this.retry();
    this.#post({ kind: 'state', state: this.state, status: undefined, to });
    for (const update of this.#snapshots.values()) this.#post({ kind: 'update', update, to });
  }

  /** An update for the page, unless it has had it. */
  #take(update: ServerSentEvent): void {
    const { event, data, id } = update;
    if (id === undefined) this.#snapshots.set(event, update);
    else {
      if (this.#had.has(id)) return;
      this.#had.add(id);
      if (this.#had.size > IDS_KEPT) this.#had.delete(this.#had.values().next().value!);
      if (this.#last === undefined || byAge(id, this.#last) > 0) this.#last = id;
    }
    // An id alone says where the stream begins.
    if (data === '') return;
    this.#options.onUpdate(event, JSON.parse(data), id);
  }

  #setState(state: LiveState, status?: number): void {
    if (state === this.state) return;
    this.state = state;
    this.#options.onState?.(state, status);
  }

  /** Signs of life of a leader without a connection; and patience with one that gives none. */
  #beat(): void {
    if (this.leads) return this.#post({ kind: 'beat' });
    if (performance.now() - this.#heardAt > this.#patienceMs) this.#stand(true);
  }

  #post(note: Note): void {
    this.#channel?.postMessage(note);
  }

  #on(target: Page | EventTarget | undefined, name: string, listener: (event: Event) => void): void {
    target?.addEventListener?.(name, listener, { signal: this.#closed.signal });
  }
}

/** Ids are `<milliseconds>-<number>`. */
function byAge(one: string, other: string): number {
  const [ms = 0, number = 0] = one.split('-').map(Number);
  const [otherMs = 0, otherNumber = 0] = other.split('-').map(Number);
  return ms - otherMs || number - otherNumber;
}
