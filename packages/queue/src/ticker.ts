// One timer for all workers of a process: a thousand idle ones must not wake it four thousand times a second.
export const tickMs = 250;

const callbacks = new Set<() => void>();
let timer: NodeJS.Timeout | undefined;

/** Calls back every 250 ms until the function that it returns is called. */
export function everyTick(callback: () => void): () => void {
  callbacks.add(callback);
  timer ??= setInterval(() => {
    for (const each of callbacks) each();
  }, tickMs);
  return () => {
    callbacks.delete(callback);
    if (callbacks.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}
