// An answer of the server inside a component: asked when the question changes, asked again while somebody looks, the last one kept while the
// next is on its way, so that nothing blinks.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from './api.js';

/** What failed is asked for again sooner: it may be over. A question that was refused is no other one a moment later. */
const failedEveryMs = 5_000;
/** An answer that has not come by then is given up when it is time to ask again. */
const patienceMs = 30_000;

export interface Answer<T> {
  data: T | undefined;
  error: unknown;
  busy: boolean;
  again: () => void;
}

interface Held<T> {
  question: string;
  data?: T;
  error?: unknown;
}

/** `question` names what is asked for: another name, another answer. `everyMs` asks again while the page is visible. */
export function useAnswer<T>(
  question: string | null,
  ask: (abort: AbortSignal) => Promise<T>,
  everyMs?: number,
): Answer<T> {
  const [held, setHeld] = useState<Held<T>>({ question: '' });
  const [busy, setBusy] = useState(false);
  const [round, setRound] = useState(0);
  /** Since when an answer is on its way; nothing while none is. */
  const askedAt = useRef<number | undefined>(undefined);
  const latest = useRef(ask);
  latest.current = ask;
  const again = useCallback(() => setRound((count) => count + 1), []);

  useEffect(() => {
    if (question === null) return undefined;
    const abort = new AbortController();
    askedAt.current = performance.now();
    setBusy(true);
    const keep = (next: Held<T>): void => {
      if (abort.signal.aborted) return;
      askedAt.current = undefined;
      setHeld((before) =>
        next.error !== undefined && before.question === question ? { ...before, ...next } : next,
      );
      setBusy(false);
    };
    latest.current(abort.signal).then(
      (data) => keep({ question, data }),
      (error: unknown) => keep({ question, error }),
    );
    return () => abort.abort();
  }, [question, round]);

  const isSame = held.question === question;
  const isRefused = held.error instanceof ApiError && held.error.status >= 400 && held.error.status < 500;
  const mayPass = isSame && held.error !== undefined && !isRefused;
  useEffect(() => {
    if (everyMs === undefined || question === null) return undefined;
    const pauseMs = mayPass ? Math.min(everyMs, failedEveryMs) : everyMs;
    const timer = window.setInterval(() => {
      // To ask again is to give up what is on its way: of a server that is slower than this, nothing would ever come.
      const isOnItsWay = askedAt.current !== undefined && performance.now() - askedAt.current < patienceMs;
      if (document.visibilityState === 'visible' && !isOnItsWay) again();
    }, pauseMs);
    return () => window.clearInterval(timer);
  }, [everyMs, question, again, mayPass]);

  return { data: isSame ? held.data : undefined, error: isSame ? held.error : undefined, busy, again };
}
