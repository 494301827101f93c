// Minutes of a queue by their number. The queue itself counts them from the present one backwards.
import type { AnyQueue, MinuteStats } from '@sluice/queue';

const minuteMs = 60_000;
/** The present minute may turn while it is asked for. */
const spare = 1;

export async function readMinutesOf(queue: AnyQueue, first: number, last: number): Promise<MinuteStats[]> {
  const [present] = await queue.minutes(1);
  const back = present!.minuteMs / minuteMs - first + 1 + spare;
  const minutes = await queue.minutes(back);
  return minutes.filter(({ minuteMs: at }) => at >= first * minuteMs && at <= last * minuteMs);
}
