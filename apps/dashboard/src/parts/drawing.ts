// How a chart is drawn: uPlot on a canvas, in the colours of the theme. Kept apart, so that a page without a chart does not load it.
import uPlot from 'uplot';
import { effect } from '@preact/signals';
import { tick } from '../format.js';
import { paint } from '../theme.js';
import type { ChartProps } from './chart.js';

export interface Drawing {
  update: (props: ChartProps) => void;
  end: () => void;
}

const height = 192;

/** Distances between the lines of the grid that make round figures, smallest first. */
const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const grains: Record<NonNullable<ChartProps['grain']>, { incrs: number[] }> = {
  whole: { incrs: powers(10, 15).flatMap((ten) => [ten, 2 * ten, ...(ten > 1 ? [2.5 * ten] : []), 5 * ten]) },
  bytes: { incrs: powers(2, 50) },
  time: {
    incrs: [
      ...powers(10, 4).flatMap((ten) => [ten, 2 * ten, 5 * ten]),
      ...[10, 15, 30].map((count) => count * second),
      ...[1, 2, 5, 10, 15, 30].map((count) => count * minute),
      ...powers(2, 10).map((count) => count * hour),
    ],
  },
};

export function draw(
  place: HTMLElement,
  first: ChartProps,
  onPoint: (index: number | null) => void,
): Drawing {
  let props = first;
  let plot = make();
  const resized = new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height }));
  resized.observe(place);
  // Colours on a canvas do not follow a theme by themselves.
  const endPaint = effect(() => {
    if (paint.value === 0) return;
    plot.destroy();
    plot = make();
  });
  return {
    update: (next) => {
      const isOther = next.lines.length !== props.lines.length;
      props = next;
      if (isOther) {
        plot.destroy();
        plot = make();
      } else {
        plot.setData(dataOf(next));
      }
    },
    end: () => {
      endPaint();
      resized.disconnect();
      plot.destroy();
    },
  };

  function make(): uPlot {
    const [ink, grid] = [colour(place, '--ink-faint'), colour(place, '--border')];
    const axis = {
      stroke: ink,
      grid: { stroke: grid, width: 1 },
      ticks: { show: false },
      font: '11px system-ui',
    };
    return new uPlot(
      {
        width: place.clientWidth,
        height,
        legend: { show: false },
        cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
        scales: { x: { time: true }, y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
        axes: [
          {
            ...axis,
            grid: { show: false },
            size: 26,
            space: 70,
            values: (_plot, ticks) => ticks.map((seconds) => tick(seconds * 1_000)),
          },
          {
            ...axis,
            size: (_plot, labels) => roomFor(labels),
            space: 32,
            ...grains[props.grain ?? 'whole'],
            values: (_plot, ticks) => ticks.map((tick) => props.show(tick)),
          },
        ],
        series: [
          {},
          ...props.lines.map((line) => ({
            stroke: colour(place, `--series-${line.colour}`),
            width: 1.5,
            // A line needs two points beside each other; one that stands alone is a dot.
            points: {
              show: false,
              size: 5,
              filter: (plot: uPlot, index: number) => alone(plot.data[index] ?? []),
            },
            spanGaps: false,
          })),
        ],
        hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? null)] },
      },
      dataOf(props),
      place,
    );
  }
}

/** Where the values are that have none beside them. */
function alone(values: ArrayLike<number | null | undefined>): number[] {
  const isKnown = (index: number): boolean => values[index] !== null && values[index] !== undefined;
  return Array.from(values, (_, index) => index).filter(
    (index) => isKnown(index) && !isKnown(index - 1) && !isKnown(index + 1),
  );
}

/** The longest label decides: `1 min 30 sec` takes more than `500`. */
function roomFor(labels: readonly string[] | null): number {
  const longest = Math.max(...(labels ?? []).map((label) => label.length), 5);
  return 14 + longest * 6.2;
}

function powers(base: number, count: number): number[] {
  return Array.from({ length: count }, (_, exponent) => base ** exponent);
}

function dataOf({ times, lines }: ChartProps): uPlot.AlignedData {
  return [times.map((at) => at / 1_000), ...lines.map(({ values }) => [...values])];
}

/** A variable as the canvas needs it: computed, because a theme may choose between two. */
function colour(place: HTMLElement, variable: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${variable})`;
  place.append(probe);
  const computed = getComputedStyle(probe).color;
  probe.remove();
  return computed;
}
