// Notes of small files that are on their way: the state of an upload that has nothing but a key. Whoever finds one old removes what
// is under the key, unless the records know it.
//
// When a file is recorded its note goes. Small files come in crowds, and are recorded together: the notes of one turn of the event
// loop go with two commands, however many they are. Should only the first one be carried out, whoever looks for the note finds none.
import type { Drive } from '@sluice/records';
import type { RedisLink } from '@sluice/redis';
import type { NewUpload } from './initiate.js';
import { keysOf, partitionOf } from './keys.js';
import { scripts } from './scripts.js';

/** After this long without an end, or when any upload would expire, somebody looks whether the object is to be removed. */
const longestNoteMs = 3_600_000;

export class Notes {
  readonly #redis: RedisLink;
  readonly #prefix: string;
  readonly #noteMs: number;
  /** By partition: ids whose notes go at the end of this turn. */
  readonly #leaving = new Map<number, { ids: string[]; gone: Promise<void> }>();

  constructor(redis: RedisLink, prefix: string, idleMs: number) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.#noteMs = Math.min(longestNoteMs, idleMs);
  }

  async leave(
    id: string,
    { tenant, drive, path }: Pick<NewUpload, 'tenant' | 'drive' | 'path'>,
    { bucket, prefix }: Pick<Drive, 'bucket' | 'prefix'>,
    objectKey: string,
    size: number,
  ): Promise<void> {
    const fields = {
      status: 'UPLOADING',
      tenant,
      drive,
      bucket,
      drive_prefix: prefix,
      path,
      s3_key: objectKey,
      expected_size: size,
      received_bytes: 0,
      stored_bytes: -1,
      part_bytes: Math.max(1, size),
      grow_every: 0,
      reserved: 0,
      charged: 0,
      part_charge: 0,
      idle_ms: this.#noteMs,
    };
    const flat = Object.entries(fields).flatMap(([name, value]) => [name, String(value)]);
    const keys = keysOf(this.#prefix, partitionOf(id)!, id);
    await this.#redis.run(scripts.initiate, keys, { id, idleMs: this.#noteMs, fields: JSON.stringify(flat) });
  }

  /**
   * While bytes keep coming, however slowly, the note is not old. The answer stops that. A renewal that fails is made up for by the
   * next one.
   */
  keep(id: string): () => void {
    const keys = keysOf(this.#prefix, partitionOf(id)!, id);
    const renew = (): void => {
      this.#redis.run(scripts.renote, keys, { id, idleMs: this.#noteMs }).catch(() => {});
    };
    const timer = setInterval(renew, this.#noteMs / 4);
    return () => clearInterval(timer);
  }

  remove(id: string): Promise<void> {
    const partition = partitionOf(id)!;
    const leaving = this.#leaving.get(partition);
    if (leaving) {
      leaving.ids.push(id);
      return leaving.gone;
    }
    const ids = [id];
    const gone = new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
      this.#leaving.delete(partition);
      return this.#removeAll(partition, ids);
    });
    this.#leaving.set(partition, { ids, gone });
    return gone;
  }

  async #removeAll(partition: number, ids: string[]): Promise<void> {
    const states = ids.map((id) => keysOf(this.#prefix, partition, id).state);
    const { attention } = keysOf(this.#prefix, partition, '');
    await Promise.all([this.#redis.call('DEL', states), this.#redis.call('ZREM', [attention, ...ids])]);
  }
}
