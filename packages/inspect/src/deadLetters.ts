// What died, and of what. The queue keeps the causes and their counts with every burial, so the answer costs the same for a hundred
// letters and for a hundred thousand.
import type { AnyQueue, LetterGroup } from '@sluice/queue';
import { checkLimit } from './page.js';

const defaultGroups = 50;
const maxGroups = 500;
/** The newest letters, whose attempts are averaged. */
const sampledLetters = 50;

export interface DeadGroup extends LetterGroup {
  queue: string;
}

export interface DeadQuestion {
  queue?: string;
  limit?: number;
  /** Only letters with these labels. */
  labels?: Readonly<Record<string, string>>;
  /** How many died per hour of the last day. */
  trend?: boolean;
}

export interface DeadGroups {
  /** Most frequent first. */
  items: DeadGroup[];
  /** All letters of these queues; with labels, those that have them. */
  letters: number;
  /** With labels: how many letters were looked at. Nobody keeps groups per label. */
  scanned?: number;
  /** False when there may be more causes than were asked for, or letters that were not looked at. */
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

export async function findGroups(queues: readonly AnyQueue[], question: DeadQuestion): Promise<DeadGroups> {
  const { limit = defaultGroups, labels, trend = false } = question;
  checkLimit('limit', limit, maxGroups);
  const parts = await Promise.all(
    queues.map((queue) => (labels ? labelledGroups(queue, labels) : allGroups(queue, limit, trend))),
  );
  const all = parts.flatMap(({ items }) => items);
  all.sort((a, b) => b.count - a.count || b.lastMs - a.lastMs);
  const sum = (pick: (part: DeadGroups) => number) => parts.reduce((total, part) => total + pick(part), 0);
  return {
    items: all.slice(0, limit),
    letters: sum(({ letters }) => letters),
    ...(labels && { scanned: sum(({ scanned }) => scanned ?? 0) }),
    complete: all.length <= limit && parts.every(({ complete }) => complete),
  };
}

async function allGroups(queue: AnyQueue, limit: number, trend: boolean): Promise<DeadGroups> {
  const [groups, letters] = await Promise.all([queue.dead.groups({ limit, trend }), queue.dead.count()]);
  const items = groups.map((group) => ({ queue: queue.name, ...group }));
  return { items, letters, complete: groups.length < limit };
}

async function labelledGroups(
  queue: AnyQueue,
  labels: Readonly<Record<string, string>>,
): Promise<DeadGroups> {
  const { groups, ...about } = await queue.dead.groupsWith(labels);
  return { items: groups.map((group) => ({ queue: queue.name, ...group })), ...about };
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
