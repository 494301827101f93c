// What is known about operations: what was asked for, how far it is, how it ended. Kept beside the queue that runs them, because a job that
// has ended leaves nothing but its result, and one that was cancelled not even that.
import type { RedisLink } from '@sluice/redis';
import { operationKeys } from './keys.js';
import type { OperationRequest, StoredRequest } from './request.js';
import { scripts } from './scripts.js';

/** Records end so long after the last change. */
export const keepMs = 30 * 24 * 3_600_000;
/** Operations that are listed. */
export const mostListed = 1_000;

export const operationStates = ['waiting', 'running', 'done', 'cancelled', 'failed'] as const;
export type OperationState = (typeof operationStates)[number];
export const overStates: readonly OperationState[] = ['done', 'cancelled', 'failed'];

export interface Progress {
  /** Letters moved so far, each counted once. */
  moved: number;
  /** Letters that there were to move; absent until they were counted. */
  total?: number;
}

export interface Operation extends OperationRequest {
  id: string;
  state: OperationState;
  /** Somebody wants it to stop, and it has not stopped yet. */
  stopping: boolean;
  progress: Progress;
  createdMs: number;
  endedMs: number | null;
  stoppedBy: string | null;
  /** Failed: why. It can be resumed. */
  error: { message: string } | null;
}

export class Book {
  readonly #link: RedisLink;
  readonly #prefix: string;

  constructor(link: RedisLink, prefix: string) {
    this.#link = link;
    this.#prefix = prefix;
  }

  async begin(id: string, request: StoredRequest, createdMs: number): Promise<void> {
    const args = { id, request: JSON.stringify(request), createdMs: Math.floor(createdMs), keepMs };
    await this.#link.run(scripts.begin, this.#keys(id), { ...args, most: mostListed });
  }

  async report(
    id: string,
    state: 'running' | 'done' | 'cancelled',
    { moved, total }: Progress,
  ): Promise<'GO' | 'STOP' | 'ENDED' | 'UNKNOWN'> {
    const args = { state, moved, total: total ?? '', nowMs: await this.nowMs(), keepMs };
    return String(await this.#link.run(scripts.report, this.#keys(id), args)) as 'GO';
  }

  async stop(id: string, by: string): Promise<'STOPPING' | 'ENDED' | 'UNKNOWN'> {
    return String(await this.#link.run(scripts.stop, this.#keys(id), { by })) as 'STOPPING';
  }

  async read(id: string): Promise<Operation | null> {
    const reply = (await this.#link.call('HGETALL', [this.#keys(id).record])) as Buffer[];
    if (reply.length === 0) return null;
    const fields = new Map<string, string>();
    for (let i = 0; i < reply.length; i += 2) fields.set(String(reply[i]), String(reply[i + 1]));
    return toOperation(id, fields);
  }

  /** What the records call their states. A record may name thousands of letters: who looks for a state need not read them all. */
  async states(ids: readonly string[]): Promise<(OperationState | null)[]> {
    const read = (id: string): Promise<unknown> => this.#link.call('HGET', [this.#keys(id).record, 'state']);
    const states = (await Promise.all(ids.map(read))) as (Buffer | null)[];
    return states.map((state) => state && (state.toString() as OperationState));
  }

  /** The latest first, from a place on. */
  async ids(after: number, limit: number): Promise<string[]> {
    const args = [this.#keys('').list, after, after + limit - 1, 'REV'];
    return ((await this.#link.call('ZRANGE', args)) as Buffer[]).map(String);
  }

  /** By the clock that decides when a letter died. */
  async nowMs(): Promise<number> {
    const [seconds, micros] = (await this.#link.call('TIME', [])) as [Buffer, Buffer];
    return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
  }

  #keys(id: string) {
    return operationKeys(this.#prefix, id);
  }
}

function toOperation(id: string, fields: ReadonlyMap<string, string>): Operation {
  const { untilMs: _, ...request } = JSON.parse(fields.get('request')!) as StoredRequest;
  const state = fields.get('state') as OperationState;
  const [total, endedMs] = [fields.get('total'), fields.get('endedMs')];
  const stoppedBy = fields.get('stop') ?? null;
  return {
    ...request,
    ...{ id, state, stoppedBy },
    stopping: stoppedBy !== null && (state === 'waiting' || state === 'running'),
    progress: { moved: Number(fields.get('moved')), ...(total !== undefined && { total: Number(total) }) },
    createdMs: Number(fields.get('createdMs')),
    endedMs: endedMs === undefined ? null : Number(endedMs),
    error: null,
  };
}
