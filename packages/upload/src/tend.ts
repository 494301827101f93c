// Looking after an upload that has been quiet, whatever the reason: a process died between two steps, the client went away, or there
// is something left to clean up. It is decided from the state alone, and may be done at any time and by anybody.
//
// `Caretaker` finds those uploads: every change of an upload says when somebody should look at it next, and whoever finds that
// time passed puts a job on the queue. A Redis that is full takes no jobs, and gets room by what they would do: then it is done at once.
import { isSluiceError, type Logger } from '@sluice/base';
import { complete } from './complete.js';
import { cleanUp, end, expire, type End } from './end.js';
import { keysFor, runScript, type Engine } from './engine.js';
import { keysOf } from './keys.js';
import { tellUploading } from './nodeStatus.js';
import { partAt, partNumbered, type PartPlan } from './plan.js';
import { scripts } from './scripts.js';
import { spill } from './spill.js';
import { readAttempts, readExtents, readState, readWindow, type Extent } from './state.js';
import { ask } from './work.js';
import { dropFrames, keepFrames, loseVanished, writePart } from './writePart.js';

const lookEveryMs = 2_000;
const atOnce = 200;
/** How often the records are asked for uploads that Redis has forgotten and for those that ended long ago; oftener where uploads expire sooner. */
const longestOrphansEveryMs = 600_000;
const orphansAtOnce = 1_000;
const doomedAtOnce = 100;
/** A batch is one transaction of some milliseconds; in a day there is time for many millions. */
const prunedAtOnce = 1_000;
const prunedBatches = 100;
const soonestMs = 1_000;
/** Chunks that wait for their predecessors have frames that must be kept. */
const longestPauseMs = 900_000;

export async function tend(engine: Engine, id: string, signal: AbortSignal): Promise<void> {
  const state = await readState(engine, id);
  const keys = keysFor(engine, id);
  if (!keys) return;
  if (!state) {
    await engine.redis.call('ZREM', [keys.attention, id]);
    return;
  }
  if (state.status !== 'PENDING' && state.status !== 'UPLOADING' && state.status !== 'COMPLETING') {
    return cleanUpEnded(engine, id);
  }
  if (state.ending) {
    const { status, code, reason } = state.ending;
    await end(engine, id, status as End, code, reason);
    return cleanUpEnded(engine, id);
  }
  if (state.status === 'COMPLETING' || (state.size !== undefined && state.storedBytes === state.size)) {
    await complete(engine, id, signal);
    return cleanUpEnded(engine, id);
  }
  const nowMs = await redisNow(engine);
  const quietMs = nowMs - state.updatedAt;
  // Who has sent everything is not idle: it is us who take long. The note of a small file knows of no bytes, also of none at all.
  const waiting = await readWindow(engine, id);
  const isReceived = state.size !== undefined && state.receivedBytes === state.size;
  const isAllThere = isReceived && waiting.length === 0 && !state.isNote;
  if (quietMs >= state.idleMs && !isAllThere) {
    await expire(engine, id);
    return cleanUpEnded(engine, id);
  }
  if (state.status === 'UPLOADING' && !state.isNote) await tellUploading(engine, state);
  await dropFrames(engine, id, await readAttempts(engine, id, 'freed'));
  const buffered = await readExtents(engine, id);
  const gone = await keepFrames(engine, id, [...buffered, ...waiting]);
  await loseVanished(engine, id, gone);
  const isThere = ({ attempt }: Extent): boolean => attempt === undefined || !gone.includes(attempt);
  const extents = buffered.filter(isThere);
  const full = fullParts(state, extents, state.size);
  for (const part of full)
    await ask(engine, { do: 'part', upload: id, part }, state).catch(
      whenFull(() => writePart(engine, id, part, signal)),
    );
  const isQuiet = quietMs >= engine.settings.spillAfterMs;
  if (isQuiet || state.isPressed) {
    const unfinished = extents.filter(({ offset }) => !full.has(partAt(state, offset).index));
    await spill(engine, state, { extents: unfinished, waiting: waiting.filter(isThere) }, signal);
  }
  const { spillAfterMs } = engine.settings;
  const isInRedis = extents.some(({ attempt }) => attempt !== undefined) || state.reservedBytes > 0;
  const { updatedAt } = state;
  const nextMs = isInRedis ? (isQuiet ? nowMs : updatedAt) + spillAfterMs : nowMs + longestPauseMs;
  const nextAt = Math.max(Math.min(nextMs, updatedAt + state.idleMs), nowMs + soonestMs);
  const args = { id, updatedAt, isQuiet: isQuiet ? '1' : '', nextAt };
  const [, ...undropped] = await runScript(engine, 'tended', id, args);
  await dropFrames(engine, id, undropped);
}

/** The records decide first, because a completion may still be under way somewhere; what they have ended is then removed. */
export async function endOrphan(engine: Engine, id: string, tenant: string): Promise<void> {
  const { uploads, drives } = engine.records;
  // A Redis that was restored from a backup knows it again.
  if (await readState(engine, id)) return;
  const { upload } = await uploads.end({ id, status: 'EXPIRED', reason: 'its state was lost' });
  const drive = upload.status === 'COMPLETED' ? undefined : await drives.getById(tenant, upload.driveId);
  if (!drive) return;
  const { bucket, prefix: drivePrefix } = drive;
  const { objectKey, createdAt } = upload;
  const remains = { id, tenant, objectKey, bucket, drivePrefix, createdAt: createdAt.getTime() };
  await cleanUp(engine, { ...remains, status: 'EXPIRED' });
}

function whenFull(work: () => Promise<void>): (error: unknown) => Promise<void> {
  return (error) => {
    if (!isSluiceError(error, 'QUEUE_FULL')) throw error;
    return work();
  };
}

/** Nothing is left of an upload that has ended; what arrives late is found by one more look. */
async function cleanUpEnded(engine: Engine, id: string): Promise<void> {
  const state = await readState(engine, id);
  if (!state || ['PENDING', 'UPLOADING', 'COMPLETING'].includes(state.status)) return;
  await cleanUp(engine, state);
  await runScript(engine, 'forget', id, { id, lateMs: engine.settings.lateMs });
}

/** Parts whose bytes are all buffered. */
function fullParts(plan: PartPlan, extents: Extent[], size: number | undefined): Set<number> {
  const bytes = new Map<number, number>();
  for (const { offset, length } of extents) {
    const { index } = partAt(plan, offset);
    bytes.set(index, (bytes.get(index) ?? 0) + length);
  }
  const isFull = ([index, there]: [number, number]): boolean =>
    there === partNumbered(plan, index, size).size;
  return new Set([...bytes].filter(isFull).map(([index]) => index));
}

async function redisNow({ redis }: Engine): Promise<number> {
  const [seconds, micros] = (await redis.call('TIME', [])) as [Buffer, Buffer];
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}

export class Caretaker {
  readonly #engine: Engine;
  readonly #logger: Logger;
  readonly #stopped = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #orphansAt = 0;
  /** Uploads that have no state, and since when. */
  #orphans = new Map<string, number>();

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
    this.#stopped.abort();
    await this.#looking;
  }

  /** One round: whoever is due gets a job, and what nobody needs is deleted. */
  async look(): Promise<void> {
    const { settings, redis, partitions } = this.#engine;
    await partitions.refresh();
    for (const partition of partitions.all) {
      const { attention, budget } = keysOf(settings.prefix, partition, '');
      const due = (await redis.run(
        scripts.overdue,
        { attention, budget },
        // Handed out again if nobody has done anything about it by then.
        { limit: atOnce, pauseMs: 2 * settings.lookAgainMs },
      )) as Buffer[];
      for (const id of due.map(String))
        await ask(this.#engine, { do: 'tend', upload: id }).catch(whenFull(() => this.#tendHere(id)));
    }
    await this.#deleteDoomed();
    if (performance.now() < this.#orphansAt) return;
    this.#orphansAt = performance.now() + Math.min(longestOrphansEveryMs, settings.idleMs);
    await this.#endOrphans();
    await this.#prune();
  }

  /** One that cannot be looked after must not keep the others from it. */
  async #tendHere(id: string): Promise<void> {
    await tend(this.#engine, id, this.#stopped.signal).catch((error: unknown) =>
      this.#logger.warn({ err: error, upload: id }, 'an upload could not be looked after yet'),
    );
  }

  /** Objects that no file refers to any more, because it was replaced or deleted. Who began to read one may read it to its end. */
  async #deleteDoomed(): Promise<void> {
    const { records, settings } = this.#engine;
    const { deleteGraceMs: graceMs } = settings;
    const gone: string[] = [];
    const stayed: string[] = [];
    for (const { objectKey, bucket } of await records.doomed.list({ limit: doomedAtOnce, graceMs })) {
      try {
        await this.#engine.storeOf({ bucket, prefix: '' }).delete(objectKey);
        gone.push(objectKey);
      } catch (error) {
        if (!isSluiceError(error)) throw error;
        this.#logger.warn({ err: error }, 'an object that nobody needs could not be deleted yet');
        stayed.push(objectKey);
      }
    }
    await records.doomed.forget(gone);
    // A bucket that is gone for good must not keep the others from their turn.
    await records.doomed.postpone(stayed);
  }

  /** Uploads that ended long ago; what is left of a large number is for the next time. */
  async #prune(): Promise<void> {
    const { records, settings } = this.#engine;
    const { recordKeepMs: endedMs } = settings;
    for (let batch = 0; batch < prunedBatches; batch++)
      if ((await records.uploads.prune({ endedMs, limit: prunedAtOnce })) < prunedAtOnce) return;
  }

  /**
   * Uploads that the records have and Redis lost: nobody can send to them any more. There is no state to say when they were cleaned
   * up, so they are ended only when nothing can arrive late. That is a job, because it must come to its end once it has begun.
   */
  async #endOrphans(): Promise<void> {
    const { records, settings } = this.#engine;
    const before = this.#orphans;
    this.#orphans = new Map();
    const olderThan = new Date(Date.now() - settings.idleMs);
    let after: string | undefined;
    do {
      const page = { olderThan, limit: orphansAtOnce, ...(after !== undefined && { after }) };
      const open = await records.uploads.listOpen(page);
      for (const { id, tenant } of open) {
        if (await readState(this.#engine, id)) continue;
        const since = before.get(id) ?? performance.now();
        this.#orphans.set(id, since);
        if (performance.now() >= since + settings.lateMs)
          await ask(this.#engine, { do: 'orphan', upload: id, tenant });
      }
      after = open.length < orphansAtOnce ? undefined : open.at(-1)!.id;
    } while (after !== undefined && !this.#stopped.signal.aborted);
  }
}
