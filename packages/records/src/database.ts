/**
 * The connections to PostgreSQL, with the manners that every record relies on:
 *
 * - a call settles by its deadline, whatever happens to the server or the socket;
 * - one call is one statement and so one transaction. It is repeated here until the deadline when a connection was lost, the
 *   server is starting, or two transactions were in each other's way: every statement we send is safe to repeat;
 * - nobody is told that a statement was refused of which an earlier attempt may have been carried out, or still is: callers remove
 *   what was refused;
 * - a connection on which anything unexpected happened is thrown away, never handed to the next caller;
 * - what remains is a typed error.
 */
import { isSluiceError, silentLogger, sleep, type Logger } from '@sluice/base';
import type { CompiledQuery } from 'kysely';
import { Client, DatabaseError, Pool, types as postgresTypes, type ClientConfig } from 'pg';
import { recordsErrors, refusal } from './errors.js';

export const DEFAULT_DEADLINE_MS = 10_000;
export const DEFAULT_POOL_SIZE = 16;
const CONNECT_MS = 3_000;
const IDLE_MS = 30_000;
const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 500;
/** Transactions that lose against others this often meet something that waiting does not cure. */
const MAX_COLLISIONS = 20;
const INT8_OID = 20;

export interface DatabaseOptions {
  url: string;
  poolSize?: number;
  deadlineMs?: number;
  logger?: Logger;
}

export interface CallOptions {
  deadlineMs?: number;
  /** The same was sent before, and nobody knows what became of it. */
  mayHaveRun?: boolean;
}

/** Sizes and counters fit into a double: 2^53 bytes are eight pebibytes. */
const types = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === INT8_OID && format !== 'binary' ? Number : postgresTypes.getTypeParser(oid, format),
};

/** How often a call that met this error should be tried again. */
type Verdict = 'refused' | 'collision' | 'unavailable';

export class Database {
  readonly deadlineMs: number;
  private readonly pool: Pool;
  private readonly logger: Logger;
  private closed = false;

  constructor(private readonly options: DatabaseOptions) {
    this.deadlineMs = options.deadlineMs ?? DEFAULT_DEADLINE_MS;
    this.logger = options.logger ?? silentLogger;
    this.pool = new Pool({
      ...this.settings(),
      max: options.poolSize ?? DEFAULT_POOL_SIZE,
      idleTimeoutMillis: IDLE_MS,
    });
    // A connection at work that is lost tells its query; without a listener it would also end this process.
    this.pool.on('connect', (client) => client.on('error', () => {}));
    // An idle connection that the server ends is no trouble: the pool has already forgotten it.
    this.pool.on('error', (error) => this.logger.debug({ error }, 'an idle connection to PostgreSQL ended'));
  }

  /** A question that Kysely built. */
  async ask<Row>(
    what: string,
    question: { compile(): CompiledQuery<Row> },
    options?: CallOptions,
  ): Promise<Row[]> {
    const { sql, parameters } = question.compile();
    return (await this.query(what, sql, [...parameters], options)) as Row[];
  }

  /** A function of ours that takes one JSON object and returns one. */
  async call<Answer>(name: string, argument: object, options?: CallOptions): Promise<Answer> {
    const rows = await this.query(name, `SELECT ${name}($1) AS answer`, [JSON.stringify(argument)], options);
    return (rows[0] as { answer: Answer }).answer;
  }

  /** One statement, repeated until its deadline. */
  async query(
    what: string,
    sql: string,
    values: unknown[] = [],
    options: CallOptions = {},
  ): Promise<unknown[]> {
    const limitMs = options.deadlineMs ?? this.deadlineMs;
    const start = performance.now();
    let outcomeUnknown = options.mayHaveRun ?? false;
    let collisions = 0;
    if (this.closed) throw recordsErrors.RECORDS_CLOSED({ what });
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      const attempt = { sent: false };
      try {
        return await this.attempt(sql, values, start + limitMs, attempt);
      } catch (error) {
        const verdict = judge(error);
        const isFinal = verdict === 'refused' || (verdict === 'collision' && ++collisions >= MAX_COLLISIONS);
        if (isFinal && !outcomeUnknown) throw explain(what, error);
        outcomeUnknown ||= attempt.sent && verdict === 'unavailable' && codeOf(error) === undefined;
        const waitedMs = Math.round(performance.now() - start);
        if (isFinal || this.closed || limitMs - waitedMs <= pauseMs) {
          const reason = reasonOf(error);
          throw recordsErrors.RECORDS_UNAVAILABLE(
            { what, waitedMs, outcomeUnknown, reason },
            { cause: error },
          );
        }
        await sleep(pauseMs * (0.5 + Math.random() / 2));
      }
    }
  }

  /** Work on a connection of its own, in one transaction that ends with it. Its queries may take as long as is said. */
  async alone<T>(what: string, limitMs: number, work: (client: Client) => Promise<T>): Promise<T> {
    const client = await this.connectAlone(`sluice ${what}`, limitMs);
    try {
      await client.query(`BEGIN; SET LOCAL statement_timeout = ${limitMs}`);
      const result = await work(client);
      await client.query('COMMIT');
      await client.end();
      return result;
    } catch (error) {
      // The server undoes what a lost connection left unfinished.
      abandon(client);
      throw this.translate(what, error);
    }
  }

  /** A connection outside the pool, for locks and notifications that belong to a connection. Its owner ends it. */
  async connectAlone(name: string, queryLimitMs = this.deadlineMs): Promise<Client> {
    if (this.closed) throw recordsErrors.RECORDS_CLOSED({ what: name });
    const client = new Client({ ...this.settings(), application_name: name, query_timeout: queryLimitMs });
    client.on('error', () => {});
    try {
      await client.connect();
      return client;
    } catch (error) {
      abandon(client);
      throw this.translate('connect', error);
    }
  }

  /** Any error of a connection that was not made by `query`, as one of ours. */
  translate(what: string, error: unknown): Error {
    if (isSluiceError(error)) return error;
    if (judge(error) === 'refused') return explain(what, error);
    const details = { what, waitedMs: this.deadlineMs, outcomeUnknown: true, reason: reasonOf(error) };
    return recordsErrors.RECORDS_UNAVAILABLE(details, { cause: error });
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    await this.pool.end();
  }

  private async attempt(
    sql: string,
    values: unknown[],
    endMs: number,
    progress: { sent: boolean },
  ): Promise<unknown[]> {
    const client = await this.pool.connect();
    let trouble: Error | undefined;
    try {
      progress.sent = true;
      // The client's own limit counts when the server does not answer at all; the server's limit is the connection's.
      const limited = { text: sql, values, query_timeout: Math.max(1, Math.ceil(endMs - performance.now())) };
      return (await client.query(limited)).rows as unknown[];
    } catch (error) {
      if (judge(error) === 'unavailable') trouble = error as Error;
      throw error;
    } finally {
      client.release(trouble);
    }
  }

  private settings(): ClientConfig {
    return {
      connectionString: this.options.url,
      connectionTimeoutMillis: Math.min(CONNECT_MS, this.deadlineMs),
      statement_timeout: this.deadlineMs,
      idle_in_transaction_session_timeout: this.deadlineMs,
      keepAlive: true,
      application_name: 'sluice',
      types,
    };
  }
}

/** Ends a connection without waiting for anybody. */
export function abandon(client: Client): void {
  const { stream } = (client as unknown as { connection: { stream: { destroy(): void } } }).connection;
  stream.destroy();
}

/** SQLSTATEs after which the same statement may succeed on another connection, or a little later. */
const PASSING = /^(08|53|57P0|58030|25006|57014|55P03)/;
/** 40001 and 40P01 are PostgreSQL's; SLAGN is our functions' own; 23505 and its like are two that made the same row. */
const COLLISIONS = new Set(['40001', '40P01', 'SLAGN', '23505']);

function judge(error: unknown): Verdict {
  const code = codeOf(error);
  if (code === undefined) return 'unavailable';
  if (COLLISIONS.has(code)) return 'collision';
  return PASSING.test(code) ? 'unavailable' : 'refused';
}

/** The SQLSTATE of an answer of PostgreSQL; undefined for a trouble of the connection. */
function codeOf(error: unknown): string | undefined {
  return error instanceof DatabaseError ? error.code : undefined;
}

function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  return error instanceof Error ? error.message : String(error);
}

function explain(what: string, error: unknown): Error {
  const { code, message, detail, constraint } = error as DatabaseError;
  if (code === 'SLUIC') {
    const known = refusal(message, detail, error);
    if (known) return known;
  }
  if (constraint === 'nodes_path' || constraint === 'nodes_client_node_id')
    return recordsErrors.NODE_EXISTS({ path: detail ?? '' }, { cause: error });
  return recordsErrors.RECORDS_REFUSED({ what, reason: `${message} (${code})` }, { cause: error });
}
