// Lists that may be long: page after page is added below. What was looked at is said, because a search is bounded.
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { messageOf } from '../data/api.js';
import { useAnswer } from '../data/answer.js';
import type { Page } from '../data/shapes.js';
import { number, plural } from '../format.js';
import { say } from './toast.js';

export interface Pages<Item> {
  items: Item[] | undefined;
  error: unknown;
  busy: boolean;
  next: string | null;
  /** Later pages were asked for. */
  isFurther: boolean;
  scanned: number;
  more: () => void;
  again: () => void;
}

type AskPage<Item> = (cursor: string | undefined, abort?: AbortSignal) => Promise<Page<Item>>;

export function usePages<Item>(question: string | null, ask: AskPage<Item>, everyMs?: number): Pages<Item> {
  const [rest, setRest] = useState<Page<Item>[]>([]);
  const [busy, setBusy] = useState(false);
  // Whoever has gone to later pages reads; the list must not move under them.
  const first = useAnswer(
    question,
    (abort) => ask(undefined, abort),
    rest.length === 0 ? everyMs : undefined,
  );
  useEffect(() => setRest([]), [question]);
  const all = first.data ? [first.data, ...rest] : [];
  const next = all.at(-1)?.next ?? null;
  const load = async (): Promise<void> => {
    if (next === null) return;
    setBusy(true);
    try {
      const page = await ask(next);
      setRest((before) => [...before, page]);
    } catch (error) {
      say(messageOf(error), 'bad');
    } finally {
      setBusy(false);
    }
  };
  return {
    items: first.data && all.flatMap(({ items }) => items),
    error: first.error,
    busy: busy || first.busy,
    next,
    isFurther: rest.length > 0,
    scanned: all.reduce((sum, { scanned = 0 }) => sum + scanned, 0),
    more: () => void load(),
    again: () => {
      setRest([]);
      first.again();
    },
  };
}

/** The first of a list that is here already as a whole, and a foot that shows more of it. */
export function useFirst<Row>(
  rows: readonly Row[],
  what: string,
  step: number,
): { first: readonly Row[]; foot: ComponentChildren } {
  const [shown, setShown] = useState(step);
  const foot = rows.length > shown && (
    <>
      <span>
        {number(shown)} of {number(rows.length)} {what}
      </span>
      <button class="button small" type="button" onClick={() => setShown(shown + step)}>
        Show more
      </button>
    </>
  );
  return { first: rows.slice(0, shown), foot: foot || undefined };
}

export function More<Item>(props: {
  pages: Pages<Item>;
  one: string;
  many?: string;
  /** How many stand above it, where the stream has brought others. */
  all?: number;
}) {
  const { pages, one, many } = props;
  const shown = props.all ?? pages.items?.length ?? 0;
  return (
    <>
      <span>
        {plural(shown, one, many)}
        {pages.scanned > shown && `, ${number(pages.scanned)} looked at`}
        {pages.next === null ? '' : '; there are more'}
      </span>
      {pages.next !== null && (
        <button
          class="button small"
          type="button"
          aria-busy={pages.busy}
          disabled={pages.busy}
          onClick={pages.more}
        >
          {pages.scanned > shown ? 'Look further' : 'Show more'}
        </button>
      )}
    </>
  );
}
