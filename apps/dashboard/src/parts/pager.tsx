// Lists that may be long: page after page is added below. What was looked at is said, because a search is bounded: a page may be empty and have
// a next one, so that nothing found so far is something else than nothing there.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { messageOf } from '../data/api.js';
import { useAnswer } from '../data/answer.js';
import type { Page } from '../data/shapes.js';
import { number, plural } from '../format.js';
import { Answered } from './answered.js';
import { Empty } from './notice.js';
import { say } from './toast.js';

export interface Pages<Item> {
  items: Item[] | undefined;
  error: unknown;
  /** A later page is on its way. */
  busy: boolean;
  next: string | null;
  /** Later pages were asked for. */
  isFurther: boolean;
  scanned: number;
  more: () => void;
  again: () => void;
}

type AskPage<Item> = (cursor: string | undefined, abort: AbortSignal) => Promise<Page<Item>>;

export function usePages<Item>(question: string | null, ask: AskPage<Item>, everyMs?: number): Pages<Item> {
  // Whoever has gone to later pages reads; the list must not move under them. The first page is kept as it was, because the next ones continue it
  // and no newer one.
  const [read, setRead] = useState<{ question: string | null; pages: Page<Item>[] }>();
  const [busy, setBusy] = useState(false);
  const asking = useRef<AbortController | undefined>(undefined);
  const isFurther = read !== undefined && read.question === question;
  const pace = isFurther || busy ? undefined : everyMs;
  const first = useAnswer(question, (abort) => ask(undefined, abort), pace);
  const all = isFurther ? read.pages : first.data ? [first.data] : [];
  const next = all.at(-1)?.next ?? null;
  /** A page that continues what is not shown any more must not come. */
  const giveUp = (): void => {
    asking.current?.abort();
    asking.current = undefined;
    setBusy(false);
  };
  // Whoever comes back to a question begins with its first page, as it is then.
  useEffect(
    () => () => {
      giveUp();
      setRead(undefined);
    },
    [question],
  );
  const load = async (): Promise<void> => {
    if (next === null || asking.current) return;
    const abort = new AbortController();
    asking.current = abort;
    setBusy(true);
    try {
      const page = await ask(next, abort.signal);
      if (!abort.signal.aborted) setRead({ question, pages: [...all, page] });
    } catch (error) {
      if (!abort.signal.aborted) say(messageOf(error), 'bad');
    } finally {
      if (!abort.signal.aborted) giveUp();
    }
  };
  return {
    items: all.length === 0 ? undefined : all.flatMap(({ items }) => items),
    error: first.error,
    busy,
    next,
    isFurther,
    scanned: all.reduce((sum, { scanned = 0 }) => sum + scanned, 0),
    more: () => void load(),
    again: () => {
      giveUp();
      setRead(undefined);
      first.again();
    },
  };
}

/** What stands in a panel whose list comes page by page: its rows or why there are none, and a foot that leads on. */
export function Listing<Item>(props: {
  pages: Pages<Item>;
  one: string;
  many?: string;
  /** What is shown, where that is not what the pages brought: the stream knows more of it, or some are left out. */
  rows?: readonly Item[] | undefined;
  /** Some were asked for, so that none of these is not none at all. */
  isFiltered?: boolean;
  /** What stands there when there is none at all. */
  none: ComponentChildren;
  children: (rows: readonly Item[]) => ComponentChildren;
}) {
  const { pages, one, many } = props;
  const rows = props.rows ?? pages.items;
  return (
    <>
      <Answered answer={{ ...pages, data: rows }}>
        {(found) => {
          if (found.length > 0) return props.children(found);
          if (pages.next !== null)
            return (
              <Empty title={`No ${one} so far`}>
                A search looks at a few thousand at a time, and has not come to the end. Look further below.
              </Empty>
            );
          if (props.isFiltered)
            return <Empty title={`No ${one} matches`}>The filters above leave all others out.</Empty>;
          return props.none;
        }}
      </Answered>
      {rows && (rows.length > 0 || pages.next !== null) && (
        <footer>
          <More pages={pages} shown={rows.length} one={one} many={many} />
        </footer>
      )}
    </>
  );
}

function More<Item>(props: { pages: Pages<Item>; shown: number; one: string; many: string | undefined }) {
  const { pages, shown } = props;
  // Not every page that is left has a row for us.
  const isSearch = pages.scanned > shown || shown === 0;
  return (
    <>
      <span>
        {plural(shown, props.one, props.many)}
        {pages.scanned > shown && `, ${number(pages.scanned)} looked at`}
        {pages.next !== null && (isSearch ? '; there may be more' : '; there are more')}
      </span>
      {pages.next !== null && (
        // Not disabled while it is busy: a disabled button loses the focus.
        <button
          class="button small"
          type="button"
          aria-busy={pages.busy}
          aria-disabled={pages.busy}
          onClick={pages.more}
        >
          {isSearch ? 'Look further' : 'Show more'}
        </button>
      )}
    </>
  );
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
