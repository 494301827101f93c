/**
 * The relay carries events from the outbox to a sink, in order, at least once.
 *
 *     lead ──▶ read the oldest ──▶ publish ──▶ remove ──┐
 *               ▲                                       │   nothing there: sleep until a wake-up, or look now and then
 *               └───────────────────────────────────────┘
 *
 * Any number of relays may run; one leads and the others wait to take over. A row is removed only after the sink has confirmed it, so
 * a death at any point publishes again what may have been published, with the same ids, and loses nothing. Rows are read in the order
 * of their numbers, and a transaction that touches a node waits for the one before, so that the events of one node are in order.
 *
 * The sink or PostgreSQL away: the relay says so once, tries again with growing pauses, and says when it goes on.
 */
import { silentLogger, sleep, startStop, withDeadline, type Logger, type Service } from '@sluice/base';
import type { Leadership, OutboxEvent, OutboxState, Records } from '@sluice/records';
import type { EventSink } from './sink.js';

export const DEFAULT_BATCH = 500;
const LOOK_EVERY_MS = 2_000;
const WORTH_A_TRIP = 50;
const GATHER_MS = 25;
const TAKE_OVER_EVERY_MS = 1_000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;
/** What is left of a stop's time when the relay gives up waiting for the sink. */
const LAST_MOMENT_MS = 200;

export interface RelayOptions {
  records: Records;
  sink: EventSink;
  logger?: Logger;
  /** Events that are published at once. */
  batch?: number;
}

export class Relay implements Service {
  /** Since this relay was made. */
  published = 0;
  private readonly service: Service;
  private readonly logger: Logger;
  private readonly batch: number;
  private leadership: Leadership | undefined;
  private stopping = new AbortController();
  private running: Promise<void> = Promise.resolve();
  private pauseMs = FIRST_PAUSE_MS;
  private troubled = false;
  /** Something may have been written since the outbox was last read. */
  private woken = false;
  private wake: () => void = () => {};

  constructor(private readonly options: RelayOptions) {
    this.logger = options.logger ?? silentLogger;
    this.batch = options.batch ?? DEFAULT_BATCH;
    this.service = startStop({
      name: 'event relay',
      start: () => {
        this.stopping = new AbortController();
        this.running = this.run();
      },
      stop: (deadlineMs) => this.end(deadlineMs),
    });
  }

  start(): Promise<void> {
    return this.service.start();
  }

  stop(deadlineMs?: number): Promise<void> {
    return this.service.stop(deadlineMs);
  }

  /** Whether this relay is the one that publishes. */
  get leading(): boolean {
    return this.leadership !== undefined;
  }

  /** Whether it is waiting for the sink or for PostgreSQL to come back. */
  get inTrouble(): boolean {
    return this.troubled;
  }

  /** How many events wait, and for how long the oldest has. */
  state(): Promise<OutboxState> {
    return this.options.records.outbox.state();
  }

  /** Never rejects: whatever goes wrong is waited out until the relay is stopped. */
  private async run(): Promise<void> {
    while (!this.stopped) {
      try {
        await this.lead();
      } catch (error) {
        await this.pauseAfter(error, 'the event relay waits: events are kept until PostgreSQL answers');
      }
    }
  }

  private async lead(): Promise<void> {
    this.leadership = await this.options.records.outbox.lead(() => this.wakeUp());
    if (this.leadership === undefined) {
      await this.rest(TAKE_OVER_EVERY_MS * (0.75 + Math.random() / 2));
      return;
    }
    this.logger.debug({}, 'this event relay leads');
    try {
      while (!this.stopped) await this.carry(this.leadership);
    } finally {
      this.leadership.release();
      this.leadership = undefined;
    }
  }

  /** One batch, or a rest if there is nothing to carry. */
  private async carry(leadership: Leadership): Promise<void> {
    this.woken = false;
    const events = await leadership.read(this.batch);
    if (events.length === 0) {
      this.recovered();
      await this.untilWoken();
      return;
    }
    try {
      await this.options.sink.publish(events.map(toSinkEvent));
    } catch (error) {
      await this.pauseAfter(error, 'the event relay waits: events are kept until the sink takes them');
      return;
    }
    this.recovered();
    await leadership.remove(events);
    this.published += events.length;
    // Under load the next ones are there already; a moment later there are enough of them to be worth the trip.
    if (events.length < WORTH_A_TRIP) await this.rest(GATHER_MS);
  }

  private wakeUp(): void {
    this.woken = true;
    this.wake();
  }

  private async untilWoken(): Promise<void> {
    if (this.woken) return;
    const woken = new AbortController();
    this.wake = () => woken.abort();
    await sleep(LOOK_EVERY_MS, AbortSignal.any([woken.signal, this.stopping.signal])).catch(() => {});
    this.wake = () => {};
  }

  private async pauseAfter(error: unknown, message: string): Promise<void> {
    if (this.stopped) return;
    if (this.troubled) this.logger.debug({ error }, message);
    else this.logger.warn({ error }, message);
    this.troubled = true;
    await this.rest(this.pauseMs * (0.5 + Math.random() / 2));
    this.pauseMs = Math.min(this.pauseMs * 2, LONGEST_PAUSE_MS);
  }

  private recovered(): void {
    if (this.troubled) this.logger.info({}, 'the event relay goes on');
    this.troubled = false;
    this.pauseMs = FIRST_PAUSE_MS;
  }

  private async rest(ms: number): Promise<void> {
    await sleep(ms, this.stopping.signal).catch(() => {});
  }

  private get stopped(): boolean {
    return this.stopping.signal.aborted;
  }

  /** Waits for the batch under way. What the sink has not confirmed by then is published again by the next leader. */
  private async end(deadlineMs: number): Promise<void> {
    this.stopping.abort();
    const patienceMs = Math.max(1, deadlineMs - LAST_MOMENT_MS);
    const late = new Error('the sink did not answer in time');
    await withDeadline(this.running, patienceMs, () => late).catch(() => {
      this.logger.warn({ deadlineMs }, 'the event relay gave up waiting for the sink');
      this.leadership?.release();
    });
  }
}

function toSinkEvent({ eventId, topic, nodeId, payload }: OutboxEvent) {
  return { eventId, topic, key: nodeId, value: JSON.stringify(payload) };
}
