// Light, dark, or as the system says. Remembered in this browser; `theme.js` sets it before the first paint.
import { signal } from '@preact/signals';

export type Theme = 'system' | 'light' | 'dark';
const place = 'sluice.theme';
const order: readonly Theme[] = ['system', 'light', 'dark'];

export const theme = signal<Theme>(stored());
/** Counts up when colours change, whoever changed them: what is painted on a canvas is painted again. */
export const paint = signal(0);

export function nextTheme(): void {
  theme.value = order[(order.indexOf(theme.value) + 1) % order.length]!;
  if (theme.value === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme.value;
  try {
    if (theme.value === 'system') localStorage.removeItem(place);
    else localStorage.setItem(place, theme.value);
  } catch {
    // It holds until the page is closed.
  }
  paint.value++;
}

export function followSystemTheme(): void {
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => paint.value++);
}

function stored(): Theme {
  try {
    const text = localStorage.getItem(place);
    return order.find((known) => known === text) ?? 'system';
  } catch {
    return 'system';
  }
}
