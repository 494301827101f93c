// Looking after an upload that has been quiet, whatever the reason: a process died between two steps, the client went away, or there
// is something left to clean up. It is decided from the state alone, and may be done at any time and by anybody.
//
// `Caretaker` finds those uploads: every change of an upload says when somebody should look at it next, and whoever finds that
// time passed puts a job on the queue.
import { isSluiceError, type Logger } from '@sluice/base';
import { complete } from './complete.js';
import { deleteDoomed } from './doomed.js';
import { cleanUp, expire } from './end.js';
import { keysFor, runScript, type Engine } from './engine.js';
import { keysOf } from './keys.js';
import { partAt, partNumbered } from './plan.js';
import { scripts } from './scripts.js';
import { spill } from './spill.js';
import { readExtents, readState } from './state.js';
import { ask } from './work.js';
import { keepFrames } from './writePart.js';

const lookEveryMs = 2_000;
const atOnce = 200;
/** Handed out again if nobody has done anything about it by then. */
const handedOutMs = 30_000;
/** How often the records are asked for uploads that Redis has forgotten; oftener where uploads expire sooner. */
const longestOrphansEveryMs = 600_000;
const orphansAtOnce = 100;

export async function tend(engine: Engine, id: string, signal: AbortSignal): Promise<void> {
  const state = await readState(engine, id);
  const keys = keysFor(engine, id);
  if (!keys) return;
  if (!state) {
    await engine.redis.call('ZREM', [keys.attention, id]);
    return;
  }
  if (state.status !== 'PENDING' && state.status !== 'UPLOADING' && state.status !== 'COMPLETING') {
    await cleanUp(engine, state);
    await runScript(engine, 'forget', id, { id });
    return;
  }
  if (state.status === 'COMPLETING' || (state.size !== undefined && state.storedBytes === state.size))
    return complete(engine, id, signal);
  const nowMs = await redisNow(engine);
  const quietMs = nowMs - state.updatedAt;
  if (quietMs >= state.idleMs) return expire(engine, id);
  const extents = await readExtents(engine, id);
  await keepFrames(engine, id, extents);
  const full = new Set<number>();
  for (const { offset } of extents) {
    const { index, start } = partAt(state, offset);
    const { size } = partNumbered(state, index, state.size);
    const there = extents.filter((other) => other.offset >= start && other.offset < start + size);
    if (there.reduce((sum, { length }) => sum + length, 0) === size) full.add(index);
  }
  for (const part of full) await ask(engine, { do: 'part', upload: id, part });
  if (quietMs >= engine.settings.spillAfterMs) await spill(engine, state, extents, full, signal);
  const nextMs = extents.some(({ attempt }) => attempt !== undefined)
    ? nowMs + engine.settings.spillAfterMs
    : state.updatedAt + state.idleMs;
  await engine.redis.call('ZADD', [keys.attention, 'XX', Math.max(nextMs, nowMs + 1_000), id]);
}

async function redisNow({ redis }: Engine): Promise<number> {
  const [seconds, micros] = (await redis.call('TIME', [])) as [Buffer, Buffer];
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}

export class Caretaker {
  readonly #engine: Engine;
  readonly #logger: Logger;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #orphansAt = 0;

  constructor(engine: Engine) {
    this.#engine = engine;
    this.#logger = engine.logger;
  }

  start(): void {
    this.#timer ??= setInterval(() => {
      this.#looking ??= this.look()
        .catch((error: unknown) =>
          this.#logger.warn({ err: error }, 'quiet uploads could not be looked after'),
        )
        .finally(() => {
          this.#looking = undefined;
        });
    }, lookEveryMs);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.#looking;
  }

  /** One round: whoever is due gets a job, and what nobody needs is deleted. */
  async look(): Promise<void> {
    const { settings, redis } = this.#engine;
    for (let partition = 0; partition < settings.partitions; partition++) {
      const { attention } = keysOf(settings.prefix, partition, '');
      const due = (await redis.run(
        scripts.overdue,
        { attention },
        { limit: atOnce, pauseMs: handedOutMs },
      )) as Buffer[];
      for (const id of due) await ask(this.#engine, { do: 'tend', upload: String(id) });
    }
    await deleteDoomed(this.#engine);
    if (performance.now() < this.#orphansAt) return;
    this.#orphansAt = performance.now() + Math.min(longestOrphansEveryMs, settings.idleMs);
    await this.#endOrphans();
  }

  /** Uploads that the records have and Redis lost: nobody can send to them any more. */
  async #endOrphans(): Promise<void> {
    const { records, settings } = this.#engine;
    const olderThan = new Date(Date.now() - settings.idleMs);
    for (const upload of await records.uploads.listOpen({ olderThan, limit: orphansAtOnce })) {
      const { id, tenant, driveId, objectKey } = upload;
      if (await readState(this.#engine, id)) continue;
      try {
        await records.uploads.end({ id, status: 'EXPIRED', reason: 'its state was lost' });
        const drive = await records.drives.getById(tenant, driveId);
        if (!drive) continue;
        const { bucket, prefix: drivePrefix } = drive;
        await cleanUp(this.#engine, { id, tenant, status: 'EXPIRED', objectKey, bucket, drivePrefix });
      } catch (error) {
        if (!isSluiceError(error)) throw error;
        this.#logger.warn({ err: error, upload: id }, 'what an upload left behind could not be removed yet');
      }
    }
  }
}
