// Which bytes of an upload are missing, as places on a bar from 0 to 1.

export interface Gap {
  from: number;
  to: number;
}

/** `missing` is a list of [first, last]; the last one may be open. Anything else is no range and is left out. */
export function gapsOf(missing: unknown, size: number | null): Gap[] {
  if (!Array.isArray(missing) || size === null || size <= 0) return [];
  return missing.flatMap((range: unknown) => {
    if (!Array.isArray(range)) return [];
    const [first, last] = range as [unknown, unknown];
    if (typeof first !== 'number') return [];
    const end = typeof last === 'number' ? last + 1 : size;
    return [{ from: bounded(first / size), to: bounded(end / size) }];
  });
}

function bounded(part: number): number {
  return Math.min(1, Math.max(0, part));
}
