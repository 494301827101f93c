// How lists look from outside: they have `items` and `next`, and say how far was looked.
interface Found<T> {
  items: readonly T[];
  cursor: string | null;
  scanned?: number;
  complete?: boolean;
}

export function pageView<T>({ cursor, ...page }: Found<T>): object {
  return { ...page, next: cursor };
}
