// A list as it comes, page by page. JSON is written item by item; a table is written in pieces that line up, so that the first rows of a
// very long list are there before the last are known.
import type { PageEnd } from './api.js';
import { count } from './human.js';
import type { Output } from './output.js';
import { renderTable, type Column } from './table.js';

/** Rows whose widths are measured together. */
const pieceRows = 1_000;

export async function showList<Row>(
  out: Output,
  columns: readonly Column<Row>[],
  rows: AsyncGenerator<Row, PageEnd | void>,
): Promise<void> {
  let piece: Row[] = [];
  let hasHead = false;
  const flush = (): void => {
    const lines = renderTable(columns, piece, { colour: out.colour, width: out.width });
    for (const line of hasHead ? lines.slice(1) : lines) out.line(line);
    hasHead = true;
    piece = [];
  };
  let step = await rows.next();
  for (; !step.done; step = await rows.next()) {
    if (out.isJson) out.jsonLine(step.value);
    else if (piece.push(step.value) >= pieceRows) flush();
  }
  if (piece.length > 0) flush();
  tellEnd(out, step.value ?? undefined);
}

function tellEnd(out: Output, end: PageEnd | undefined): void {
  if (!end) return;
  const { seen, scanned, more } = end;
  const looked = scanned > seen ? ` of ${count(scanned)} looked at` : '';
  if (more) out.say(`${count(seen)} shown${looked}; there may be more: --all, or a larger --limit`);
  else if (seen === 0) out.say(scanned > 0 ? `none${looked}` : 'none');
}
