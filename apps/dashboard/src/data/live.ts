// What the page shows while it is open, fed by one stream of server-sent events. When the stream does not come, the same figures are
// asked for every few seconds, and the page says so.
import { computed, signal } from '@preact/signals';
import { get, session } from './api.js';
import type { EventRow, Overview, UploadRow } from './shapes.js';

const pollMs = 5_000;
const retryStreamMs = 15_000;
/** The overview comes every two seconds; a stream that is silent for this long is not trusted. */
const silentMs = 12_000;
const keptEvents = 200;

export type LiveState = 'starting' | 'live' | 'polling' | 'lost';

export const overview = signal<Overview | null>(null);
export const uploads = signal<UploadRow[] | null>(null);
/** The newest first. */
export const events = signal<EventRow[]>([]);
export const liveState = signal<LiveState>('starting');
export const lastHeardMs = signal(0);

/** Ticks once a second, for countdowns; by the clock of the server as far as it is known. */
export const now = signal(Date.now());
const skewMs = signal(0);
export const serverNow = computed(() => now.value + skewMs.value);

let source: EventSource | undefined;
let timers: number[] = [];

export function startLive(): void {
  stopLive();
  openStream();
  timers = [
    window.setInterval(() => (now.value = Date.now()), 1_000),
    window.setInterval(() => void watchOver(), pollMs),
    window.setInterval(() => {
      if (!source && document.visibilityState === 'visible') openStream();
    }, retryStreamMs),
  ];
}

export function stopLive(): void {
  for (const timer of timers) window.clearInterval(timer);
  timers = [];
  source?.close();
  source = undefined;
  liveState.value = 'starting';
}

export function takeOverview(answer: Overview): void {
  overview.value = answer;
  skewMs.value = answer.atMs - Date.now();
  heard();
}

function openStream(): void {
  const topics = session.value?.installation ? 'overview,events,uploads' : 'events,uploads';
  const stream = new EventSource(`/v1/live?topics=${topics}`);
  source = stream;
  const takers: Record<string, (data: unknown) => void> = {
    overview: (data) => takeOverview(data as Overview),
    uploads: (data) => (uploads.value = (data as { items: UploadRow[] }).items),
    events: (data) => (events.value = [data as EventRow, ...events.value].slice(0, keptEvents)),
  };
  for (const [topic, take] of Object.entries(takers)) {
    stream.addEventListener(topic, (event) => {
      liveState.value = 'live';
      take(JSON.parse((event as MessageEvent<string>).data));
      heard();
    });
  }
  stream.addEventListener('open', () => {
    liveState.value = 'live';
    heard();
  });
  stream.addEventListener('error', () => {
    // A browser comes back to a broken connection by itself, but never after a refusal.
    if (stream.readyState === EventSource.CLOSED && source === stream) source = undefined;
    void watchOver();
  });
}

function heard(): void {
  lastHeardMs.value = Date.now();
}

/** Asks for what the stream did not bring. */
async function watchOver(): Promise<void> {
  if (document.visibilityState === 'hidden') return;
  const isStreaming = source?.readyState === EventSource.OPEN && Date.now() - lastHeardMs.value < silentMs;
  if (isStreaming) return;
  try {
    if (session.value?.installation) takeOverview(await get<Overview>('/v1/overview'));
    else uploads.value = (await get<{ items: UploadRow[] }>('/v1/uploads')).items;
    heard();
    liveState.value = source?.readyState === EventSource.OPEN ? 'live' : 'polling';
  } catch {
    liveState.value = 'lost';
  }
}
