/*
 * A plain text table: the first column to the left, all others to the right.
 */
export function renderTable(header: string[], rows: string[][]): string {
  const lines = [header, ...rows];
  const widths = header.map((_, column) => Math.max(...lines.map((line) => (line[column] ?? '').length)));
  const render = (line: string[]): string =>
    widths
      .map((width, column) => (line[column] ?? '')[column === 0 ? 'padEnd' : 'padStart'](width))
      .join('  ')
      .trimEnd();
  const rule = widths.map((width) => '─'.repeat(width)).join('  ');
  return [render(header), rule, ...rows.map(render)].join('\n');
}
