// Bodies and the garbage collector. Every read of a socket makes a buffer of 64 KiB outside V8's heap, with a tiny object inside that
// owns it. Thousands of them are little work for V8, so it sees no reason to sweep its young objects; but the memory behind them
// adds up, and at 64 MiB it answers with a collection of the whole heap. That cost a third of all processor time of a large upload.
// A sweep of the young objects, which is what these need, takes a millisecond; here it is asked for as bytes come by. The whole heap is
// collected on request only after much memory was let go on purpose (`partMemory.ts`).
//
// Sweeps alone are not enough. After a collection V8 waits until the heap has grown by some part of its size, and counts what the
// buffers hold; of a server with little in its heap that part may be 8 MiB, and then every sweep comes too late: up to 18 collections
// per GiB, on all cores. So it is told to let the heap grow to three times its size.
//
// When no bytes have come for a while, what is left of them is collected, and the C library gives back to the system what it had kept of
// it (`native/trim.c`): a server that has nothing to do should not hold the memory of its busiest minute.
import { createRequire } from 'node:module';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Well below what makes V8 collect everything, and enough for a sweep to be worth it. */
const sweepEveryBytes = 8 * 1_048_576;
const heapGrowingPercent = 200;
const quietMs = 10_000;
const trimAfterMs = 100;

/** Without options it collects everything; asked for `major` it leaves what buffers hold, in the V8 of Node 20. */
type Collect = (options?: { type: 'minor' }) => void;

let passedBytes = 0;
let collect: Collect | undefined;
let quiet: NodeJS.Timeout | undefined;

/** So many bytes were allocated for bodies by this process, and will soon be garbage. */
export function bytesPassed(bytes: number): void {
  passedBytes += bytes;
  if (passedBytes < sweepEveryBytes) return;
  passedBytes = 0;
  collect ??= takeCharge();
  collect({ type: 'minor' });
  if (quiet) return void quiet.refresh();
  quiet = setTimeout(() => {
    quiet = undefined;
    collectAll();
  }, quietMs).unref();
}

/** Many megabytes were let go of in a quiet moment. Left alone, V8 would keep them until it is busy again. */
export function collectAll(): void {
  collect ??= takeCharge();
  collect();
  // The memory behind what was collected is freed by other threads, a moment later.
  setTimeout(() => trim?.(), trimAfterMs).unref();
}

/** Undefined where it was not built. */
const trim = loadTrim();

function loadTrim(): (() => void) | undefined {
  try {
    const compiled = createRequire(import.meta.url)('../native/trim.node') as { trim?: () => void };
    return compiled.trim;
  } catch {
    return undefined;
  }
}

function takeCharge(): Collect {
  setFlagsFromString(`--heap-growing-percent=${heapGrowingPercent}`);
  return findCollect();
}

/** V8 shows its collector to contexts that are made after the flag was set, and to nobody else. */
function findCollect(): Collect {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as Collect | undefined;
  setFlagsFromString('--no-expose-gc');
  return gc ?? (() => {});
}
