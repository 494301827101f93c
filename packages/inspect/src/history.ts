// The history of queues and of Redis, in Redis: per minute for a day, per hour for 90 days, in space that never grows.
//
// Each series is two strings of fixed length (ring.ts). Any process may read; one at a time writes, by a lease. A writer that was
// stopped and woke up later is refused by the script itself, because the lease has another token by then.
import { randomBytes } from 'node:crypto';
import type { RedisLink } from '@sluice/redis';
import { combine } from './figures.js';
import type { InspectKeys } from './keys.js';
import {
  decodeRecords,
  encodeRecord,
  hourRing,
  minuteRing,
  offsetOf,
  recordBytes,
  stretchesOf,
} from './ring.js';
import type { Figures, Ring } from './ring.js';
import { scripts } from './scripts.js';

/** Longer than a minute: the writer prolongs it with each minute that it writes. */
export const leaseMs = 90_000;
const minutesPerHour = 60;
const deadlineMs = 5_000;

type FigureTable = Parameters<typeof combine>[0];

export class History {
  readonly #link: RedisLink;
  readonly #keys: InspectKeys;
  readonly #token = randomBytes(12).toString('base64url');

  constructor(link: RedisLink, keys: InspectKeys) {
    this.#link = link;
    this.#keys = keys;
  }

  /** Whether this process is the one that writes, for the next minute and a half. */
  async lead(): Promise<boolean> {
    const args = { token: this.#token, leaseMs };
    return String(await this.#link.run(scripts.lead, this.#keys, args, { deadlineMs })) === 'LEADS';
  }

  /** The last minute that was written of each series. */
  async rolledUntil(): Promise<Map<string, number>> {
    const reply = (await this.#link.call('HGETALL', [this.#keys.rolled], { deadlineMs })) as Buffer[];
    const minutes = new Map<string, number>();
    for (let i = 0; i < reply.length; i += 2) minutes.set(String(reply[i]), Number(reply[i + 1]));
    return minutes;
  }

  /** Writes a minute and, when it ends an hour, that hour. False when another process has the lease. */
  async write(series: string, table: FigureTable, minute: number, figures: Figures): Promise<boolean> {
    const endsHour = minute % minutesPerHour === minutesPerHour - 1;
    const hour = Math.floor(minute / minutesPerHour);
    const hourRecord = endsHour
      ? encodeRecord(hour, await this.#hourWith(series, table, minute, figures))
      : '';
    const reply = await this.#link.run(
      scripts.roll,
      {
        writer: this.#keys.writer,
        rolled: this.#keys.rolled,
        minutes: this.#keys.minutes + series,
        hours: this.#keys.hours + series,
      },
      {
        token: this.#token,
        series,
        minute,
        minuteAt: offsetOf(minuteRing, minute),
        minuteRecord: encodeRecord(minute, figures),
        minuteKeepMs: minuteRing.keepMs,
        hourAt: offsetOf(hourRing, hour),
        hourRecord,
        hourKeepMs: hourRing.keepMs,
      },
      { deadlineMs },
    );
    return String(reply) === 'OK';
  }

  readMinutes(series: string, first: number, count: number): Promise<(Figures | null)[]> {
    return this.#read(minuteRing, this.#keys.minutes + series, first, count);
  }

  readHours(series: string, first: number, count: number): Promise<(Figures | null)[]> {
    return this.#read(hourRing, this.#keys.hours + series, first, count);
  }

  async #hourWith(series: string, table: FigureTable, last: number, figures: Figures): Promise<Figures> {
    const before = await this.readMinutes(series, last - minutesPerHour + 1, minutesPerHour - 1);
    return combine(table, [...before, figures]);
  }

  async #read(ring: Ring, key: string, first: number, count: number): Promise<(Figures | null)[]> {
    const pieces = stretchesOf(ring, first, count).map(async (stretch) => {
      const from = offsetOf(ring, stretch.first);
      const to = from + stretch.count * recordBytes - 1;
      const bytes = (await this.#link.call('GETRANGE', [key, from, to], { deadlineMs })) as Buffer;
      return decodeRecords(bytes, stretch.first, stretch.count);
    });
    return (await Promise.all(pieces)).flat();
  }
}
