/**
 * The outbox: events that were written in the transactions they tell of, waiting to be published.
 *
 * One process publishes at a time: the leader. Leadership is an advisory lock on a connection of its own, and the leader reads and
 * removes rows over that same connection. When the connection is lost, so is the lock, and a leader that has not noticed yet can
 * no longer read anything; what it was just publishing may be published again by the next one, with the same event ids.
 *
 * A wake-up is a NOTIFY, sent some milliseconds after a write by the process that wrote, at most once at a time; the leader itself needs
 * none. It is not part of the transaction: PostgreSQL lets transactions with a NOTIFY commit one after the other, each with its own wait
 * for the disk.
 * A wake-up that gets lost is made up for by the leader looking now and then.
 */
import type { Client } from 'pg';
import { abandon, type Database } from './database.js';
import { build } from './schema.js';

const LOCK = 5_320_002;
const CHANNEL = 'sluice_outbox';
const KEEPALIVE_S = 2;
/**
 * The leader reads and removes some hundred rows by their key: that takes milliseconds. A connection that has nothing to say for so
 * long is dead, and a new one is made; the usual deadline is for callers whose statement may have to wait for others.
 */
const LEADER_QUERY_MS = 3_000;
const NUDGE_AFTER_MS = 10;
const NUDGE_LIMIT_MS = 2_000;

export interface OutboxEvent {
  seq: number;
  eventId: string;
  topic: string;
  nodeId: string;
  payload: Readonly<Record<string, unknown>>;
}

export interface OutboxState {
  waiting: number;
  /** Age of the oldest event that waits, in milliseconds; 0 if none does. */
  oldestMs: number;
}

export class Outbox {
  private nudgeTimer: NodeJS.Timeout | undefined;
  private nudging: Promise<unknown> | undefined;
  /** Wakes the leader, if that is this process. */
  private wakeLeader: (() => void) | undefined;

  constructor(private readonly database: Database) {}

  async state(): Promise<OutboxState> {
    const sql = `SELECT count(*) AS waiting,
      coalesce(extract(epoch FROM clock_timestamp() - min(created_at)) * 1000, 0)::float8 AS "oldestMs" FROM outbox`;
    const [row] = await this.database.query('look at the outbox', sql);
    return row as OutboxState;
  }

  /** How many events of one node wait to be published. */
  async waitingFor(nodeId: string): Promise<number> {
    const sql = 'SELECT count(*)::int AS waiting FROM outbox WHERE node_id = $1';
    const [row] = await this.database.query('look at the outbox', sql, [nodeId]);
    return (row as { waiting: number }).waiting;
  }

  /** The leadership, or undefined while another process has it. `onWake` is called when something may have been written. */
  async lead(onWake: () => void): Promise<Leadership | undefined> {
    const client = await this.database.connectAlone('sluice relay', LEADER_QUERY_MS);
    try {
      const { rows } = await client.query<{ mine: boolean }>('SELECT pg_try_advisory_lock($1) AS mine', [
        LOCK,
      ]);
      if (!rows[0]!.mine) {
        await client.end();
        return undefined;
      }
      // The lock of a leader whose machine vanished must not stay for the hours that TCP would wait.
      await client.query(`SET tcp_keepalives_idle = ${KEEPALIVE_S}; SET tcp_keepalives_interval = ${KEEPALIVE_S};
        SET tcp_keepalives_count = 3`);
      client.on('notification', onWake);
      // Whoever sleeps until a wake-up learns at once that none can come any more.
      client.on('end', () => {
        if (this.wakeLeader === onWake) this.wakeLeader = undefined;
        onWake();
      });
      this.wakeLeader = onWake;
      await client.query(`LISTEN ${CHANNEL}`);
      return new Leadership(client, this.database);
    } catch (error) {
      abandon(client);
      throw this.database.translate('lead the outbox', error);
    }
  }

  /** Something was written: tells the leader soon. */
  nudge(): void {
    this.nudgeTimer ??= setTimeout(() => {
      this.nudgeTimer = undefined;
      if (this.wakeLeader) return this.wakeLeader();
      const limit = { deadlineMs: NUDGE_LIMIT_MS };
      this.nudging = this.database.query('wake the relay', `SELECT pg_notify('${CHANNEL}', '')`, [], limit);
      // The leader looks by itself, only later.
      this.nudging.catch(() => {});
    }, NUDGE_AFTER_MS).unref();
  }

  async close(): Promise<void> {
    clearTimeout(this.nudgeTimer);
    await this.nudging?.catch(() => {});
  }
}

export class Leadership {
  constructor(
    private readonly client: Client,
    private readonly database: Database,
  ) {}

  /** The oldest events that wait. */
  async read(limit: number): Promise<OutboxEvent[]> {
    const question = build
      .selectFrom('outbox')
      .select(['seq', 'event_id as eventId', 'topic', 'node_id as nodeId', 'payload'])
      .orderBy('seq')
      .limit(limit);
    return (await this.run('read the outbox', question.compile())) as OutboxEvent[];
  }

  /** They were published. */
  async remove(events: readonly OutboxEvent[]): Promise<void> {
    const sql = 'DELETE FROM outbox WHERE seq = ANY ($1)';
    await this.run('remove published events', { sql, parameters: [events.map(({ seq }) => seq)] });
  }

  /** Gives the leadership back at once; nothing is asked of a server that may be gone. */
  release(): void {
    abandon(this.client);
  }

  private async run(
    what: string,
    query: { sql: string; parameters: readonly unknown[] },
  ): Promise<unknown[]> {
    try {
      return (await this.client.query(query.sql, [...query.parameters])).rows as unknown[];
    } catch (error) {
      // Whoever meets any trouble here gives up the leadership and takes it again.
      abandon(this.client);
      throw this.database.translate(what, error);
    }
  }
}
