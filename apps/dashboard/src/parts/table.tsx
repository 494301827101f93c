// A table with headers that name their columns, numbers that line up, and rows that the keyboard walks along (`j`, `k`). On a phone each row
// becomes a small card, unless the table is narrow enough.
import type { ComponentChildren } from 'preact';

export interface Column<Row> {
  title: string;
  /** What stands in the cell. */
  cell: (row: Row) => ComponentChildren;
  /** Right-aligned digits. */
  number?: boolean;
  /** Cut at the end instead of making the table wider. */
  cut?: boolean;
  tight?: boolean;
  /** An id or a name of the users' own: as wide as usual ones, and cut beyond that. */
  name?: boolean;
  /** On a phone a line of its own. */
  wide?: boolean;
  /** A title only for those who hear the page: columns of buttons and boxes. */
  quiet?: boolean;
}

/** So many columns fit beside each other on a phone. */
const narrow = 3;

export function Table<Row>(props: {
  label: string;
  columns: Column<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => string;
  isChosen?: (row: Row) => boolean;
}) {
  const { columns, rows } = props;
  const isNarrow = columns.length <= narrow && !columns.some(({ cut }) => cut);
  return (
    <div class={`table ${isNarrow ? '' : 'cards'}`} role="region" aria-label={props.label} tabIndex={0}>
      <table>
        <caption class="hidden">{props.label}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" class={classOf(column)}>
                {column.quiet ? <span class="hidden">{column.title}</span> : column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={props.keyOf(row)} data-row class={props.isChosen?.(row) ? 'chosen' : ''}>
              {columns.map((column) => (
                <td key={column.title} class={classOf(column)} data-label={column.quiet ? '' : column.title}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A long text in a column that cuts: the whole of it is in the tooltip. */
export function Cut({ text }: { text: string }) {
  return <span title={text}>{text}</span>;
}

function classOf<Row>(column: Column<Row>): string {
  const { number, cut, tight, name, wide, quiet } = column;
  const classes = { number, cut, tight, name, wide, quiet };
  return Object.entries(classes)
    .flatMap(([title, isOn]) => (isOn ? [title] : []))
    .join(' ');
}
