// Data of users as text: never as markup, never cut silently.
import { plural } from '../format.js';

const shownChars = 100_000;
/** In a line of a list. */
const briefChars = 300;
/** Each level moves all that is in it to the right: what is nested deeper is written in one line, or it would grow with the square of its depth. */
const indentedLevels = 40;
/** They turn the direction of what follows, so that a text could look like another. */
const turningMarks = /[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** JSON that means the same value, with marks that nobody would see written out. */
export function pretty(value: unknown): string {
  if (value === undefined) return '';
  return written(value, isDeeperThan(value, indentedLevels) ? undefined : 2);
}

/** The beginning, in one line. */
export function brief(value: unknown): string {
  const text = typeof value === 'string' ? value : value === undefined ? '' : written(value);
  return text.length > briefChars ? `${text.slice(0, briefChars)}…` : text;
}

function written(value: unknown, indent?: number): string {
  try {
    return JSON.stringify(value, null, indent).replace(
      turningMarks,
      (mark) => `\\u${mark.charCodeAt(0).toString(16)}`,
    );
  } catch {
    // A browser gives up on some thousand levels.
    return 'It is nested too deeply to be written out.';
  }
}

/** Level by level and without recursion, which the deepest would end. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  let level = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > levels) return true;
    level = level.flatMap((one): unknown[] =>
      typeof one === 'object' && one !== null ? Object.values(one) : [],
    );
  }
  return false;
}

export function Json({ value, label }: { value: unknown; label: string }) {
  return <Text text={typeof value === 'string' ? value : pretty(value)} label={label} />;
}

export function Text({ text, label }: { text: string; label: string }) {
  const isCut = text.length > shownChars;
  return (
    <>
      <pre class="code" tabIndex={0} aria-label={label}>
        {isCut ? text.slice(0, shownChars) : text}
      </pre>
      {isCut && <p class="faint">{plural(text.length - shownChars, 'more character')} not shown.</p>}
    </>
  );
}
