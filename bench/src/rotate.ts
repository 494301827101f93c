/*
 * The order of turns rotates from round to round, so that nobody always follows the same neighbour.
 */
export function rotate<T>(items: readonly T[], by: number): T[] {
  const shift = by % Math.max(items.length, 1);
  return [...items.slice(shift), ...items.slice(0, shift)];
}
