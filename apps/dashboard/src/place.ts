// Where the reader is: the address as a signal, links that change it without loading the page, and filters that live in its query, so that
// an address can be sent to somebody else.
import { computed, signal } from '@preact/signals';
import { queryText, type Query } from './data/api.js';
import { followScrolling, scrollBack, scrollOn } from './scrolled.js';

interface Address {
  path: string;
  search: string;
}

const address = signal<Address>({ path: '/', search: '' });

/** Decoded parts of the path: `/queues/a%2Fb` is `['queues', 'a/b']`. */
export const segments = computed(() => address.value.path.split('/').filter(Boolean).map(decoded));
export const path = computed(() => address.value.path);
export const query = computed(() => new URLSearchParams(address.value.search));

export function followAddress(): void {
  const read = (): void => {
    address.value = { path: location.pathname, search: location.search };
  };
  window.addEventListener('popstate', (event) => {
    read();
    // A link into the page itself scrolls by itself.
    if (location.hash === '') scrollBack(event.state);
  });
  followScrolling(history.state);
  document.addEventListener('click', followLink);
  read();
}

export function go(href: string, { replace = false } = {}): void {
  // The state tells entries of the history apart, also across a reload.
  if (replace) history.replaceState(history.state, '', href);
  else history.pushState(performance.timeOrigin + performance.now(), '', href);
  const before = address.value.path;
  address.value = { path: location.pathname, search: location.search };
  scrollOn(history.state, before !== address.value.path);
}

/** Changes some filters and keeps the others; an empty one goes. */
export function filter(changes: Query): void {
  const all: Query = { ...Object.fromEntries(query.value), ...changes };
  go(address.value.path + queryText(all), { replace: true });
}

/** `to('jobs', 'mail', '17')`, with a query at the end if there is one. */
export function to(...parts: (string | Query)[]): string {
  const last = parts.at(-1);
  const asked = typeof last === 'object' ? last : undefined;
  const names = parts.filter((part): part is string => typeof part === 'string');
  return `/${names.map(encodeURIComponent).join('/')}${queryText(asked)}`;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function followLink(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = (event.target as Element | null)?.closest?.('a');
  if (!link || link.target || link.hasAttribute('download') || link.origin !== location.origin) return;
  if (link.hasAttribute('data-leave')) return;
  event.preventDefault();
  go(link.pathname + link.search);
}

/** For commands that people copy: where this server is, as the reader reaches it. */
export function serverAddress(): string {
  return location.origin;
}
