// Keys: `/` to the search, `?` for help, `j` and `k` along rows, Enter opens one, `g` and a letter goes to a page. None of them acts while
// somebody types, or together with Ctrl, Alt or Cmd.
import { signal } from '@preact/signals';
import { pages } from './pages.js';
import { go } from './place.js';

export const helpShown = signal(false);

const chordMs = 1_200;
let chordUntil = 0;

export function followKeys(): void {
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector('dialog[open]')) return;
    if (press(event.key)) event.preventDefault();
  });
}

function press(key: string): boolean {
  if (performance.now() < chordUntil) {
    chordUntil = 0;
    const page = pages.find(({ letter }) => letter === key);
    if (page) go(`/${page.path}`);
    return page !== undefined;
  }
  switch (key) {
    case '/':
      document.getElementById('find')?.focus();
      return true;
    case '?':
      helpShown.value = true;
      return true;
    case 'g':
      chordUntil = performance.now() + chordMs;
      return true;
    case 'j':
      return walk(1);
    case 'k':
      return walk(-1);
    default:
      return false;
  }
}

/** Moves the focus to the row below or above; its first link or box has it, so that Enter and Space do what they always do. */
function walk(by: number): boolean {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')].filter((row) => focusable(row));
  if (rows.length === 0) return false;
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const next = at === -1 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by));
  focusable(rows[next]!)?.focus();
  rows[next]!.scrollIntoView({ block: 'nearest' });
  return true;
}

function focusable(row: HTMLElement): HTMLElement | null {
  return row.querySelector<HTMLElement>('a[href]') ?? row.querySelector<HTMLElement>('button, input');
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  const isField = target.matches('input:not([type=checkbox]):not([type=radio]), textarea, select');
  return isField || target.isContentEditable;
}
