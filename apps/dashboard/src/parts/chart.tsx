// A chart over time. Its drawing is loaded when the first one is shown; the place for it is there from the start, and the same figures are
// below as a table for whoever cannot see or does not trust a picture.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ComponentChildren } from 'preact';
import type { Answer } from '../data/answer.js';
import type { Series } from '../data/shapes.js';
import { clock, moment, unknown } from '../format.js';
import { Waiting } from './notice.js';
import type { Drawing } from './drawing.js';

export interface Line {
  title: string;
  values: readonly (number | null)[];
  /** Of the four in the design language: 1 and 4 are neutral, 2 is bad, 3 is a warning. */
  colour: 1 | 2 | 3 | 4;
}

export interface ChartProps {
  label: string;
  /** Milliseconds since 1970, rising. */
  times: readonly number[];
  lines: Line[];
  show: (value: number | null) => string;
  /** What stands there while nothing can be drawn. */
  empty: ComponentChildren;
  /** What the lines of the grid are multiples of; whole numbers unless stated. */
  grain?: 'whole' | 'bytes' | 'time';
}

const tableRows = 120;
const dayMs = 86_400_000;

/** Why there is nothing to draw: it is on its way, it could not be had, or nothing has happened. */
export function emptyOf(
  { data, error }: Pick<Answer<unknown>, 'data' | 'error'>,
  step: Series['step'],
): ComponentChildren {
  if (data !== undefined) return `Nothing yet; a point is added every ${step}.`;
  return error === undefined ? <Waiting /> : 'The figures could not be had.';
}

/** The last moment of which any line knows something. */
function lastKnown(lines: readonly Line[]): number {
  return Math.max(0, ...lines.map(({ values }) => values.findLastIndex((value) => value !== null)));
}

export function Chart(props: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const drawing = useRef<Drawing | undefined>(undefined);
  const latest = useRef(props);
  const [pointed, setPointed] = useState<number | null>(null);
  latest.current = props;

  const isEmpty = !props.lines.some(({ values }) => values.some((value) => value !== null));
  useEffect(() => {
    if (isEmpty) return undefined;
    let isGone = false;
    void import('./drawing.js').then(({ draw }) => {
      if (!isGone && place.current) drawing.current = draw(place.current, latest.current, setPointed);
    });
    return () => {
      isGone = true;
      drawing.current?.end();
      drawing.current = undefined;
    };
  }, [isEmpty]);
  useEffect(() => drawing.current?.update(props));

  const { times, lines, show } = props;
  // The minute that is not over has no figures yet; the last that has some is named.
  const index = pointed ?? lastKnown(lines);
  // Of a week, an hour alone does not say when.
  const isLong = (times.at(-1) ?? 0) - (times[0] ?? 0) > dayMs;
  const first = Math.max(0, times.length - tableRows);
  return (
    <figure aria-label={props.label}>
      <div class="legend">
        {lines.map(({ title, values, colour }) => (
          <span key={title} class={`series-${colour}`}>
            {title} {show(values[index] ?? null)}
          </span>
        ))}
        {!isEmpty && <span class="moment">{(isLong ? moment : clock)(times[index] ?? 0)}</span>}
      </div>
      {isEmpty ? (
        <div key="empty" class="chart empty">
          {props.empty}
        </div>
      ) : (
        <div key="drawn" class="chart" ref={place} aria-hidden="true" />
      )}
      <details class="figures-table">
        <summary>Figures as a table</summary>
        <div tabIndex={0} role="region" aria-label={`${props.label}: figures`}>
          <table>
            <thead>
              <tr>
                <th scope="col">Time</th>
                {lines.map(({ title }) => (
                  <th key={title} scope="col" class="number">
                    {title}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {times.slice(first).map((at, i) => (
                <tr key={at}>
                  <th scope="row">{moment(at)}</th>
                  {lines.map(({ title, values }) => (
                    <td key={title} class="number">
                      {values[first + i] === undefined ? unknown : show(values[first + i] ?? null)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}
