// Live updates for any number of viewers: one look at each thing for all of them, and only while somebody watches.
import type { Principal } from '@sluice/access';
import { readEvents, readNewest } from '@sluice/events';
import type { Logger } from '@sluice/base';
import { eventView, isFor, type EventView } from './eventRoutes.js';
import type { Overview, OverviewSource } from './overview.js';
import type { ControlParts } from './parts.js';
import { openUploads } from './uploadRoutes.js';

export const topics = ['overview', 'events', 'uploads'] as const;
export type Topic = (typeof topics)[number];

const everyMs: Record<Topic, number> = { overview: 2_000, events: 1_000, uploads: 1_000 };
const eventsAtOnce = 500;
/** So many times in one round, when more happens. */
const readsPerRound = 20;
/** Whoever has missed more than this is told so, and has to read the list. */
const missedAtMost = 5_000;
const uploadsAtOnce = 100;
/** The place before the first event. */
const beginning = '0-0';

export interface Viewer {
  principal: Principal;
  topics: ReadonlySet<Topic>;
  /** The last event that it has. */
  after?: string;
  /** Says where it stands before the first event comes, so that it loses none should it be cut off until then. */
  begin: (id: string) => void;
  send: (event: Topic | 'gap', data: unknown, id?: string) => void;
}

export class Live {
  readonly #parts: ControlParts;
  readonly #overview: OverviewSource;
  readonly #logger: Logger;
  readonly #viewers = new Set<Viewer>();
  /** Those that have all events up to the present; the others are still being told what they missed. */
  readonly #upToDate = new Set<Viewer>();
  readonly #catchingUp = new Set<Viewer>();
  readonly #rounds = new Map<Topic, NodeJS.Timeout>();
  #after: string | undefined;

  constructor(parts: ControlParts, overview: OverviewSource, logger: Logger) {
    this.#parts = parts;
    this.#overview = overview;
    this.#logger = logger;
  }

  /** Begins with what there is now. Returns what ends it. */
  watch(viewer: Viewer): () => void {
    this.#viewers.add(viewer);
    for (const topic of viewer.topics) {
      void this.#greet(topic, viewer);
      if (!this.#rounds.has(topic)) this.#schedule(topic);
    }
    return () => {
      this.#viewers.delete(viewer);
      this.#upToDate.delete(viewer);
    };
  }

  close(): void {
    for (const timer of this.#rounds.values()) clearTimeout(timer);
    this.#rounds.clear();
    this.#viewers.clear();
    this.#upToDate.clear();
  }

  #schedule(topic: Topic): void {
    const timer = setTimeout(() => void this.#round(topic), everyMs[topic]);
    this.#rounds.set(topic, timer);
  }

  async #round(topic: Topic): Promise<void> {
    const watching = [...this.#viewers].filter((viewer) => viewer.topics.has(topic));
    if (watching.length === 0) {
      this.#rounds.delete(topic);
      if (topic === 'events') this.#after = undefined;
      return;
    }
    try {
      await this.#tell(topic, watching);
    } catch (err) {
      // The viewers see the problem in the overview, or that nothing comes; the next round tries again.
      this.#logger.debug({ err, topic }, 'a live update was left out');
    }
    if (this.#rounds.has(topic)) this.#schedule(topic);
  }

  async #tell(topic: Topic, watching: Viewer[]): Promise<void> {
    switch (topic) {
      case 'overview':
        return tellAll(watching, 'overview', await this.#overview.latest());
      case 'uploads':
        // The newest of each tenant: of the newest of all, somebody else's many would leave a tenant nothing to see.
        for (const viewers of byScope(watching)) {
          const { items } = await openUploads(this.#parts, viewers[0]!.principal, uploadsAtOnce);
          for (const viewer of viewers) viewer.send('uploads', { items });
        }
        return;
      case 'events': {
        // Whose greeting failed is greeted again.
        for (const viewer of watching) if (!this.#upToDate.has(viewer)) void this.#greet('events', viewer);
        for (let reads = 0; reads < readsPerRound; reads++) if (!(await this.#tellEvents(watching))) return;
      }
    }
  }

  /** Returns whether there may be more. */
  async #tellEvents(watching: Viewer[]): Promise<boolean> {
    const after = await this.#presentPlace();
    const { events: redis } = this.#parts;
    const events = (await readEvents({ redis, after, limit: eventsAtOnce })).map(eventView);
    if (events.length === 0) return false;
    this.#after = events.at(-1)!.cursor;
    for (const viewer of watching) if (this.#upToDate.has(viewer)) sendEvents(viewer, events);
    return events.length === eventsAtOnce;
  }

  async #greet(topic: Topic, viewer: Viewer): Promise<void> {
    try {
      if (topic !== 'events') return await this.#tell(topic, [viewer]);
      if (this.#catchingUp.has(viewer)) return;
      this.#catchingUp.add(viewer);
      await this.#catchUp(viewer).finally(() => this.#catchingUp.delete(viewer));
    } catch (err) {
      this.#logger.debug({ err, topic }, 'a viewer was not greeted');
    }
  }

  /** Ends in the very turn in which the viewer has what everybody has: between the two no event can be lost. */
  async #catchUp(viewer: Viewer): Promise<void> {
    let present = await this.#presentPlace();
    if (viewer.after === undefined) {
      viewer.after = present;
      viewer.begin(present);
    }
    const { events: redis } = this.#parts;
    for (let missed = 0; isLater(present, viewer.after); present = this.#after ?? present) {
      if (missed >= missedAtMost) {
        viewer.send('gap', { after: viewer.after, before: present });
        viewer.after = present;
        viewer.begin(present);
        break;
      }
      const events = await readEvents({ redis, after: viewer.after, limit: eventsAtOnce });
      if (events.length === 0) break;
      missed += events.length;
      sendEvents(viewer, events.map(eventView));
    }
    if (this.#viewers.has(viewer)) this.#upToDate.add(viewer);
  }

  /** Up to where all have been told. The first one to look sets it, and nobody moves it but with the events that are told. */
  async #presentPlace(): Promise<string> {
    if (this.#after === undefined) {
      const [newest] = await readNewest({ redis: this.#parts.events, limit: 1 });
      this.#after ??= newest?.cursor ?? beginning;
    }
    return this.#after;
  }
}

/** Those who see the same are shown one look together. */
function byScope(viewers: Viewer[]): Viewer[][] {
  const scopes = new Map<string, Viewer[]>();
  for (const viewer of viewers) {
    const { installation, tenant } = viewer.principal;
    const scope = installation ? 'installation' : `tenant ${tenant}`;
    scopes.set(scope, [...(scopes.get(scope) ?? []), viewer]);
  }
  return [...scopes.values()];
}

function tellAll(watching: Viewer[], topic: Topic, data: Overview): void {
  for (const viewer of watching) viewer.send(topic, data);
}

/** An event that comes both as missed and as new is sent once. */
function sendEvents(viewer: Viewer, events: EventView[]): void {
  for (const event of events) {
    if (viewer.after !== undefined && !isLater(event.cursor, viewer.after)) continue;
    viewer.after = event.cursor;
    if (isFor(viewer.principal, event)) viewer.send('events', event, event.cursor);
  }
}

function isLater(cursor: string, than: string): boolean {
  const [ms, number] = cursor.split('-').map(Number);
  const [otherMs, otherNumber] = than.split('-').map(Number);
  return ms! > otherMs! || (ms === otherMs && number! > (otherNumber ?? 0));
}
