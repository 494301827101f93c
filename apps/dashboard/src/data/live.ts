// What the page shows while it is open, fed by one stream of server-sent events for all tabs of the browser. When the stream does not come, the
// same figures are asked for every few seconds, and the page says so.
import { computed, signal } from '@preact/signals';
import { live, type LiveWatch } from '@sluice/client/live';
import { ApiError, get, session } from './api.js';
import type { EventRow, Overview, UploadRow } from './shapes.js';

const pollMs = 5_000;
/** The overview comes every two seconds; a stream that is silent for this long is not trusted. */
const silentMs = 8_000;
/** Whoever sees answers within this time; until then what is shown is old, and says so. */
const slowMs = 2_000;
const keptEvents = 200;
/** An overview may be some seconds old; clocks that differ by more are different. */
const trustedSkewMs = 10_000;

/** `blind`: the server is there, but what it would tell is out of its reach. */
export type LiveState = 'starting' | 'live' | 'polling' | 'blind' | 'lost';

export const overview = signal<Overview | null>(null);
export const uploads = signal<UploadRow[] | null>(null);
/** The newest first. */
export const events = signal<EventRow[]>([]);
/** `events` has all that came after this place; up to it some may be missing. Null while none is. */
export const eventsLostUpTo = signal<string | null>(null);
export const liveState = signal<LiveState>('starting');
export const lastHeardMs = signal(0);
/** The code with which the server refused, while it is blind; `silent` while it has not even done that. */
export const blindFor = signal<string | null>(null);
export const silent = 'SILENT';

/** Ticks once a second, for countdowns; by the clock of the server as far as it is known. */
export const now = signal(Date.now());
const skewMs = signal(0);
export const serverNow = computed(() => now.value + skewMs.value);

let watch: LiveWatch | undefined;
let timers: number[] = [];

export function startLive(): void {
  stopLive();
  const topics = session.value?.installation ? 'overview,events,uploads' : 'events,uploads';
  watch = live({
    url: `/v1/live?topics=${topics}`,
    onUpdate: (topic, data) => {
      take(topic, data);
      // Where the overview comes along, only it tells that the server still sees: other topics go on without Redis.
      if (topic !== 'overview' && session.value?.installation) return;
      heard();
      liveState.value = 'live';
    },
    onState: (state) => {
      if (state === 'connected') {
        heard();
        liveState.value = 'live';
      } else if (state !== 'connecting') void watchOver();
    },
  });
  timers = [
    window.setInterval(() => (now.value = Date.now()), 1_000),
    window.setInterval(() => void watchOver(), pollMs),
  ];
}

export function stopLive(): void {
  for (const timer of timers) window.clearInterval(timer);
  timers = [];
  watch?.close();
  watch = undefined;
  liveState.value = 'starting';
  // Whoever comes next in this tab may be somebody else, of another tenant: nothing that the one before saw may stay.
  overview.value = null;
  uploads.value = null;
  events.value = [];
  eventsLostUpTo.value = null;
  blindFor.value = null;
  lastHeardMs.value = 0;
  skewMs.value = 0;
}

function take(topic: string, data: unknown): void {
  if (topic === 'overview') takeOverview(data as Overview);
  else if (topic === 'uploads') uploads.value = (data as { items: UploadRow[] }).items;
  else if (topic === 'events') takeEvent(data as EventRow);
  else if (topic === 'gap') takeGap(data as { before: string });
}

function takeEvent(event: EventRow): void {
  const all = [event, ...events.value];
  events.value = all.slice(0, keptEvents);
  if (all.length > keptEvents) eventsLostUpTo.value = all[keptEvents]!.cursor;
}

/** The server left events out, because too many came at once: those before them say nothing about the present any more. */
function takeGap({ before }: { before: string }): void {
  events.value = [];
  eventsLostUpTo.value = before;
}

export function takeOverview(answer: Overview): void {
  overview.value = answer;
  const skew = answer.atMs - Date.now();
  skewMs.value = Math.abs(skew) > trustedSkewMs ? skew : 0;
  heard();
}

function heard(): void {
  blindFor.value = null;
  lastHeardMs.value = Date.now();
}

/** Asks for what the stream did not bring. */
async function watchOver(): Promise<void> {
  if (document.visibilityState === 'hidden') return;
  const isStreaming = watch?.state === 'connected';
  if (isStreaming && Date.now() - lastHeardMs.value < silentMs) return;
  const asking = watch;
  const slow = window.setTimeout(() => {
    if (watch === asking) admitSilence();
  }, slowMs);
  try {
    const isWhole = session.value?.installation;
    const answer = await get<Overview | { items: UploadRow[] }>(isWhole ? '/v1/overview' : '/v1/uploads');
    // Whoever asked may have left meanwhile; the answer is not for the next one.
    if (watch !== asking) return;
    if ('items' in answer) uploads.value = answer.items;
    else takeOverview(answer);
    heard();
    liveState.value = isStreaming ? 'live' : 'polling';
  } catch (error) {
    if (watch !== asking) return;
    const isThere = error instanceof ApiError && error.status >= 500;
    liveState.value = isThere ? 'blind' : 'lost';
    blindFor.value = isThere ? error.code : null;
  } finally {
    window.clearTimeout(slow);
  }
}

/** A Redis that hangs refuses nothing: the stream stays open, and an answer takes as long as the server is patient. */
function admitSilence(): void {
  const isNew = liveState.value === 'live' || liveState.value === 'polling';
  if (!isNew || Date.now() - lastHeardMs.value < silentMs) return;
  liveState.value = 'blind';
  blindFor.value = silent;
}
