// The one table renderer. Columns line up; figures stand to the right. On a terminal a table fits its width: columns that can be cut
// are cut, the widest first, then those that can be missed are left out, then the rest is cut further; what still does not fit is cut at the
// edge. Elsewhere nothing is cut, because nobody knows the width.
import type { Colour, Style } from './colour.js';
import { safeLine } from './sanitise.js';
import { cutText, padText, textWidth, wrapText } from './textWidth.js';

export interface Column<Row> {
  title: string;
  value: (row: Row) => string | number | null | undefined;
  align?: 'right';
  style?: (row: Row) => Style | undefined;
  /** May be shortened when the room is small. A number: not below so many columns while others can be left out instead. */
  cut?: boolean | number;
  /** May be left out when the room is very small. */
  spare?: boolean;
}

/** Columns in which a name or a sentence can still be recognised. */
export const readable = 24;
const gap = 2;
const leastCut = 8;

export function renderTable<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  { colour, width }: { colour: Colour; width: number | undefined },
): string[] {
  const texts = rows.map((row) => columns.map((column) => cellText(column.value(row))));
  const natural = columns.map((column, i) =>
    Math.max(textWidth(column.title), ...texts.map((cells) => textWidth(cells[i]!))),
  );
  const widths = width === undefined ? natural : fitted(columns, natural, width);
  const shown = columns.map((column, i) => ({ column, i })).filter(({ i }) => widths[i]! > 0);
  const line = (cellOf: (i: number) => string, styleOf: (i: number) => Style | undefined): string => {
    let left = width ?? Infinity;
    const cells = shown.map(({ column, i }, place) => {
      const text = cutText(cellOf(i), widths[i]!);
      const isLast = place === shown.length - 1 && column.align === undefined;
      const padded = cutText(isLast ? text : padText(text, widths[i]!, column.align), left);
      left = Math.max(0, left - textWidth(padded) - gap);
      const style = styleOf(i);
      return style && padded !== '' ? colour[style](padded) : padded;
    });
    return cells.filter((cell) => cell !== '').join(' '.repeat(gap));
  };
  const head = line(
    (i) => columns[i]!.title,
    () => 'dim',
  );
  const body = rows.map((row, r) =>
    line(
      (i) => texts[r]![i]!,
      (i) => columns[i]!.style?.(row),
    ),
  );
  return [head, ...body];
}

/** Names and values in two columns that line up; a value that is too long for the width goes on below itself. */
export function renderPairs(
  pairs: readonly (readonly [string, string | undefined])[],
  { colour, width }: { colour: Colour; width: number | undefined },
): string[] {
  const known = pairs.filter((pair): pair is readonly [string, string] => pair[1] !== undefined);
  const widest = Math.max(0, ...known.map(([name]) => textWidth(name)));
  const room = Math.max(leastCut, (width ?? Infinity) - widest - gap);
  return known.flatMap(([name, value]) =>
    wrapText(safeLine(value), room).map(
      (line, i) => `${colour.dim(padText(i === 0 ? name : '', widest))}${' '.repeat(gap)}${line}`,
    ),
  );
}

function cellText(value: string | number | null | undefined): string {
  return value === null || value === undefined || value === '' ? '–' : safeLine(String(value));
}

/** Widths whose sum fits; 0 for a column that is left out. */
function fitted<Row>(columns: readonly Column<Row>[], natural: readonly number[], width: number): number[] {
  const widths = [...natural];
  const excess = (): number => {
    const shown = widths.filter((w) => w > 0);
    return shown.reduce((sum, w) => sum + w, 0) + gap * (shown.length - 1) - width;
  };
  const shrink = (leastOf: (column: Column<Row>) => number): void => {
    for (let over = excess(); over > 0; over = excess()) {
      const widest = widestCut(columns, widths, leastOf);
      if (widest === undefined) return;
      const others = columns.flatMap(({ cut }, i) => (cut && i !== widest ? [widths[i]!] : []));
      const second = Math.max(0, ...others.filter((w) => w < widths[widest]!));
      const target = Math.max(leastOf(columns[widest]!), second);
      widths[widest] = Math.max(widths[widest]! - over, Math.min(target, widths[widest]! - 1));
    }
  };
  const wished = ({ cut }: Column<Row>): number => (typeof cut === 'number' ? cut : leastCut);
  shrink(wished);
  for (let i = columns.length - 1; i >= 0 && excess() > 0; i--) {
    if (!columns[i]!.spare) continue;
    widths[i] = 0;
    // What was cut for the sake of a column that is gone now gets its room back.
    columns.forEach(({ cut }, k) => cut && widths[k]! > 0 && (widths[k] = natural[k]!));
    shrink(wished);
  }
  shrink(() => leastCut);
  return widths;
}

function widestCut<Row>(
  columns: readonly Column<Row>[],
  widths: readonly number[],
  leastOf: (column: Column<Row>) => number,
): number | undefined {
  let found: number | undefined;
  columns.forEach((column, i) => {
    const isCandidate = column.cut && widths[i]! > leastOf(column);
    if (isCandidate && (found === undefined || widths[i]! > widths[found]!)) found = i;
  });
  return found;
}
