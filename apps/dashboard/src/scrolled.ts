// Where each page of the history was scrolled to. The browser goes back there at once, when the page is still empty and short; this waits until
// there is something to scroll.

const patienceMs = 3_000;
/** Whoever does one of these has a place of their own in mind. */
const ownWays = ['wheel', 'touchstart', 'pointerdown', 'keydown'] as const;

const places = new Map<unknown, number>();
let here: unknown;
let wanted: number | undefined;

export function followScrolling(entry: unknown): void {
  here = entry;
  window.addEventListener(
    'scroll',
    () => {
      if (wanted === undefined) places.set(here, window.scrollY);
    },
    { passive: true },
  );
  for (const way of ownWays) {
    window.addEventListener(way, () => (wanted = undefined), { passive: true, capture: true });
  }
}

/** The reader went on: to the top of another page, or to something else at the same place of this one. */
export function scrollOn(entry: unknown, toTop: boolean): void {
  here = entry;
  wanted = undefined;
  if (toTop) window.scrollTo(0, 0);
  places.set(here, window.scrollY);
}

/** The reader came back, or went forward again. */
export function scrollBack(entry: unknown): void {
  here = entry;
  wanted = places.get(entry) ?? 0;
  const giveUpMs = performance.now() + patienceMs;
  const step = (): void => {
    if (wanted === undefined || here !== entry) return;
    window.scrollTo(0, wanted);
    if (Math.abs(window.scrollY - wanted) < 1 || performance.now() > giveUpMs) wanted = undefined;
    else requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}
