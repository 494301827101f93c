// How far back charts reach. The choice stands in the address, so that what one sees can be sent to somebody else.
import { computed } from '@preact/signals';
import { serverNow } from './data/live.js';
import type { Series } from './data/shapes.js';
import { query } from './place.js';

export interface Span {
  /** In the address. */
  name: string;
  title: string;
  step: Series['step'];
  /** Where it is not what the server answers to whoever asks for these steps. */
  backMs?: number;
}

const dayMs = 86_400_000;

const usual: Span = { name: '', title: 'last hour', step: 'minute' };

export const spans: readonly Span[] = [
  usual,
  { name: 'day', title: 'last day', step: 'hour', backMs: dayMs },
  { name: 'week', title: 'last week', step: 'hour' },
  { name: 'quarter', title: 'last 90 days', step: 'day' },
];

export const chosenSpan = computed(() => spans.find(({ name }) => name === query.value.get('span')) ?? usual);

/** What is asked of a series. */
export function askedOf({ step, backMs }: Span): { step: Series['step']; from?: number } {
  return { step, ...(backMs !== undefined && { from: Math.round(serverNow.value - backMs) }) };
}
