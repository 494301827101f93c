// Reading what is ordered by time in several partitions as if it were one: by time, then by partition, then by id.
//
// A page goes by place and not by offset: a place is a time, a partition and an id, and the next page is what lies behind it, however
// much came and went meanwhile.
import { queueErrors } from './errors.js';
import type { Partition } from './partition.js';

export interface TimePlace {
  atMs: number;
  /** -1 lies before everything of that time, and `behindAll` behind it. */
  partition: number;
  id: string;
}

/** More than any queue has partitions. */
export const behindAll = 1_000_000;

/** The next places in the sorted sets of this name. */
export async function placesAfter(
  partitions: readonly Partition[],
  key: 'delayed' | 'ticks',
  place: TimePlace,
  limit: number,
): Promise<TimePlace[]> {
  checkPlace(place);
  const pages = partitions.map(async (partition) => {
    // Of what has the place's own millisecond, that in earlier partitions has been seen, that in later ones not.
    const atMs = partition.index < place.partition ? place.atMs + 1 : place.atMs;
    const atId = partition.index === place.partition ? place.id : '';
    // deaths.lua reads any sorted set of ids by time; it is given ours under its name.
    const keys = { ...partition.keys, dead: partition.keys[key] };
    const args = { print: '', atMs, atId, order: 'oldest', limit };
    const reply = (await partition.runWith(keys, 'deaths', args)) as Buffer[];
    return Array.from({ length: reply.length / 2 }, (_, i) => ({
      ...{ id: String(reply[2 * i]), atMs: Number(reply[2 * i + 1]), partition: partition.index },
    }));
  });
  return (await Promise.all(pages))
    .flat()
    .sort((a, b) => a.atMs - b.atMs || a.partition - b.partition)
    .slice(0, limit);
}

/** Places come back from outside: what Redis is asked must be a time, whatever they say. */
function checkPlace({ atMs, partition, id }: TimePlace): void {
  const isPlace = Number.isSafeInteger(atMs) && atMs >= 0 && Number.isSafeInteger(partition);
  if (isPlace && typeof id === 'string') return;
  throw queueErrors.OPTION_INVALID({ option: 'after', value: atMs, allowed: 'that of the page before' });
}
