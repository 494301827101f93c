// What died, and of what. The queue keeps the causes and their counts with every burial, so the answer costs the same for a hundred
// letters and for a hundred thousand.
import type { AnyQueue, LetterGroup } from '@sluice/queue';
import { checkLimit } from './page.js';

const maxGroups = 500;
/** The newest letters, whose attempts are averaged. */
const sampledLetters = 50;

export interface DeadGroup extends LetterGroup {
  queue: string;
}

export interface DeadGroups {
  /** Most frequent first. */
  items: DeadGroup[];
  /** All letters of these queues. */
  letters: number;
  /** False when there may be more causes than were asked for. */
  complete: boolean;
}

export interface DeadSummary {
  queue: string;
  letters: number;
  /** Runs of a letter on average, over so many of the newest letters; null without letters. */
  averageAttempts: number | null;
  sampled: number;
  topError: LetterGroup | null;
}

export async function findGroups(queues: readonly AnyQueue[], limit: number): Promise<DeadGroups> {
  checkLimit('limit', limit, maxGroups);
  const parts = await Promise.all(
    queues.map(async (queue) => {
      const [groups, letters] = await Promise.all([queue.dead.groups({ limit }), queue.dead.count()]);
      return { letters, groups: groups.map((group) => ({ queue: queue.name, ...group })) };
    }),
  );
  const all = parts.flatMap(({ groups }) => groups);
  all.sort((a, b) => b.count - a.count || b.lastMs - a.lastMs);
  return {
    items: all.slice(0, limit),
    letters: parts.reduce((sum, { letters }) => sum + letters, 0),
    complete: all.length <= limit && parts.every(({ groups }) => groups.length < limit),
  };
}

export async function summariseDead(queue: AnyQueue): Promise<DeadSummary> {
  const [letters, groups, newest] = await Promise.all([
    queue.dead.count(),
    queue.dead.groups({ limit: 1 }),
    queue.dead.list({ limit: sampledLetters }),
  ]);
  const sampled = newest.letters.length;
  const attempts = newest.letters.reduce((sum, { attemptCount }) => sum + attemptCount, 0);
  return {
    queue: queue.name,
    letters,
    averageAttempts: sampled > 0 ? attempts / sampled : null,
    sampled,
    topError: groups[0] ?? null,
  };
}
