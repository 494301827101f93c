// From a figure to an alert. A threshold must be crossed for a while before anybody is told, and be kept well for as long before it is
// taken back:
//
//        crossed               crossed for long enough
//   ok ──────────▶ pending ──────────────────────────▶ raised ◀────────────┐ not kept well
//    ▲     kept      │                                    │ kept well      │
//    └───────────────┘                                    └──────────▶ clearing ──kept well for long enough──▶ ok
//
// A figure that is not known (nothing happened) keeps every threshold. All times are those of Redis.
import { isKept, isKeptWell, type Threshold } from './threshold.js';

export interface Standing {
  state: 'ok' | 'pending' | 'raised' | 'clearing';
  /** When it came into this state. */
  sinceMs: number;
  /** When it was raised; part of the identity of the alert. */
  raisedMs?: number;
  /** The figure of the last look; absent when it was not known. */
  value?: number;
  /** What is yet to be told. It is written down with the change, and taken away when it was told: a crash in between tells again. */
  untold?: 'raised' | 'cleared';
}

export function judge(
  threshold: Threshold,
  before: Standing | undefined,
  value: number | undefined,
  nowMs: number,
  forMs: number,
): Standing {
  const last: Standing = before ?? { state: 'ok', sinceMs: nowMs };
  const { value: _, ...rest } = last;
  const seen: Standing = { ...rest, ...(value !== undefined && { value }) };
  const to = (state: Standing['state'], more: Partial<Standing> = {}): Standing => ({
    ...seen,
    ...more,
    state,
    sinceMs: nowMs,
  });
  const isCrossed = isKept(threshold, value) === false;
  const isWell = isKeptWell(threshold, value) !== false;
  const isOld = nowMs - last.sinceMs >= forMs;
  switch (last.state) {
    case 'ok':
      if (!isCrossed) return seen;
      return forMs === 0 ? to('raised', { raisedMs: nowMs, untold: 'raised' }) : to('pending');
    case 'pending':
      if (!isCrossed) return to('ok');
      return isOld ? to('raised', { raisedMs: nowMs, untold: 'raised' }) : seen;
    case 'raised':
      if (!isWell) return seen;
      return forMs === 0 ? to('ok', { untold: 'cleared' }) : to('clearing');
    case 'clearing':
      if (!isWell) return to('raised');
      return isOld ? to('ok', { untold: 'cleared' }) : seen;
  }
}

export function isRaised({ state }: Standing): boolean {
  return state === 'raised' || state === 'clearing';
}
