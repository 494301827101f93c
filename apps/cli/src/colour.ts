// Colours, or none. Whoever styles a text has made it safe before.

const styles = {
  bold: ['1', '22'],
  dim: ['2', '22'],
  inverse: ['7', '27'],
  red: ['31', '39'],
  green: ['32', '39'],
  yellow: ['33', '39'],
  cyan: ['36', '39'],
} as const;

export type Style = keyof typeof styles;
export type Colour = Record<Style, (text: string) => string>;

export function colourOf(enabled: boolean): Colour {
  const entries = Object.entries(styles).map(([name, [begin, end]]) => [
    name,
    enabled ? (text: string) => `\x1b[${begin}m${text}\x1b[${end}m` : (text: string) => text,
  ]);
  return Object.fromEntries(entries) as Colour;
}

/** Good, middling, bad; whatever else the word is stays plain. */
export function stateStyle(state: string): Style | undefined {
  if (/^(done|completed|active|ok|met|success|succeeded|delivered|fresh|running)$/i.test(state))
    return 'green';
  if (/^(delayed|blocked|paused|warn|stale|aged|expired|cancelled|draining|pending)$/i.test(state))
    return 'yellow';
  return /^(dead|failed|fail|missed|away|refused)$/i.test(state) ? 'red' : undefined;
}
