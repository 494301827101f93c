// The tail of an idle upload leaves Redis: each run of neighbouring extents of a part becomes a staging object, and its frames go. So
// does each chunk that waits for its predecessors. When the upload goes on, parts are put together from both.
import { Readable } from 'node:stream';
import { randomBytes } from 'node:crypto';
import { failPoint } from '@sluice/base';
import { runScript, type Engine } from './engine.js';
import { partAt } from './plan.js';
import { receivedCrc64, type Extent, type State } from './state.js';
import { dropFrames, PartBytes } from './writePart.js';

export async function spill(
  engine: Engine,
  state: State,
  { extents, waiting }: { extents: Extent[]; waiting: Extent[] },
  signal: AbortSignal,
): Promise<void> {
  for (const run of runsOf(state, extents)) await stage(engine, state, run, '', signal);
  for (const chunk of waiting)
    if (chunk.attempt !== undefined && chunk.length > 0)
      await stage(engine, state, [chunk], chunk.name, signal);
}

/** `waiting` is the number of a chunk that has no place yet. */
async function stage(
  engine: Engine,
  state: State,
  run: Extent[],
  waiting: string,
  signal: AbortSignal,
): Promise<void> {
  const { id } = state;
  const store = engine.storeOf({ bucket: state.bucket, prefix: state.drivePrefix });
  const start = run[0]!.offset;
  const length = run.reduce((sum, extent) => sum + extent.length, 0);
  const key = stagingKey(state, waiting === '' ? start : `chunk-${waiting}`);
  const bytes = new PartBytes(engine, id, store, run, false);
  const body = { stream: Readable.from(bytes.read(), { objectMode: false }), length };
  // What arrived is what must be staged; the store refuses anything else.
  const crc64 = await receivedCrc64(engine, id, run);
  await store.put(key, body, { signal, ...(crc64 !== undefined && { crc64 }) }).catch(async (error) => {
    bytes.end(false);
    await bytes.giveUpLost();
    throw error;
  });
  bytes.end(true);
  failPoint('spill.staged');
  const [word, ...freed] = await runScript(engine, 'spilled', id, {
    id,
    start,
    length,
    key,
    extents: run.map(({ member }) => member).join('\n'),
    name: run[0]!.name,
    waiting,
  });
  failPoint('spill.recorded');
  if (word === 'OK') engine.metrics.spilled(length);
  else await store.delete(key);
  await dropFrames(engine, id, freed);
}

/** Beside the object of the upload, so that it goes with the upload, whatever becomes of it. */
export function stagingKey({ objectKey }: State, place: number | string): string {
  const folder = objectKey.slice(0, objectKey.lastIndexOf('/'));
  return `${folder}/staging-${place}-${randomBytes(6).toString('hex')}`;
}

/** Extents that touch each other within a part; what is staged already stays where it is. */
function runsOf(state: State, extents: Extent[]): Extent[][] {
  const runs: Extent[][] = [];
  for (const extent of extents) {
    if (extent.staged !== undefined) continue;
    const run = runs.at(-1);
    const before = run?.at(-1);
    const touches =
      before !== undefined &&
      before.offset + before.length === extent.offset &&
      partAt(state, before.offset).index === partAt(state, extent.offset).index;
    if (touches) run!.push(extent);
    else runs.push([extent]);
  }
  return runs;
}
