// Data of users as text: never as markup, never cut silently.
import { plural } from '../format.js';

const shownChars = 100_000;

export function pretty(value: unknown): string {
  return value === undefined ? '' : JSON.stringify(value, null, 2);
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
