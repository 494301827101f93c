// Bodies and the garbage collector. Every read of a socket makes a buffer of 64 KiB outside V8's heap, with a tiny object inside that
// owns it. Thousands of them are little work for V8, so it sees no reason to sweep its young objects; but the memory behind them
// adds up, and at 64 MiB it answers with a collection of the whole heap. That cost a third of all processor time of a large upload.
// A sweep of the young objects, which is what these need, takes a millisecond; here it is asked for as bytes come by. The whole heap is
// collected on request only after much memory was let go on purpose (`partMemory.ts`).
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Well below what makes V8 collect everything, and enough for a sweep to be worth it. */
const sweepEveryBytes = 8 * 1_048_576;

type Collect = (options: { type: 'minor' | 'major' }) => void;

let passedBytes = 0;
let collect: Collect | undefined;

/** So many bytes were allocated for bodies by this process, and will soon be garbage. */
export function bytesPassed(bytes: number): void {
  passedBytes += bytes;
  if (passedBytes < sweepEveryBytes) return;
  passedBytes = 0;
  collect ??= findCollect();
  collect({ type: 'minor' });
}

/** Many megabytes were let go of in a quiet moment. Left alone, V8 would keep them until it is busy again. */
export function collectAll(): void {
  collect ??= findCollect();
  collect({ type: 'major' });
}

/** V8 shows its collector to contexts that are made after the flag was set, and to nobody else. */
function findCollect(): Collect {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as Collect | undefined;
  setFlagsFromString('--no-expose-gc');
  return gc ?? (() => {});
}
