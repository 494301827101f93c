// Lists that are shown as a whole, because somebody chooses from them: page after page is asked for, up to a bound, and whether that was all is
// part of the answer.
import { get } from './api.js';
import type { Drive } from './shapes.js';

export interface Whole<Item> {
  items: Item[];
  isAll: boolean;
}

type AskNext<Item> = (after: string | null) => Promise<{ items: Item[]; next: string | null }>;

export async function whole<Item>(mostPages: number, ask: AskNext<Item>): Promise<Whole<Item>> {
  const items: Item[] = [];
  let after: string | null = null;
  for (let pages = 0; pages < mostPages; pages++) {
    const page: Awaited<ReturnType<AskNext<Item>>> = await ask(after);
    items.push(...page.items);
    after = page.next;
    if (after === null) break;
  }
  return { items, isAll: after === null };
}

/** A page has a thousand; whoever has more drives writes the name of one. */
const mostDrivePages = 2;

export function drivesOf(tenant: string, abort?: AbortSignal): Promise<Whole<Drive>> {
  return whole(mostDrivePages, async (after) => {
    const { drives, next } = await get<{ drives: Drive[]; next: string | null }>('/v1/drives', {
      query: { after },
      tenant,
      ...(abort && { signal: abort }),
    });
    return { items: drives, next };
  });
}
