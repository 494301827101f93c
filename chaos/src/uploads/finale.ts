// The end of a run: nothing is broken any more, and the service puts itself in order. What clients left behind expires, what dead
// servers left undone is done by others, what nobody needs is deleted, and everything that happened is published.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Stage } from './stage.js';

const lookEveryMs = 250;

/** Resolves with what is still to do after the time given; nothing if all is in order. */
export async function untilQuiet(
  { postgres, databaseUrl, redis, chunks }: Stage,
  withinMs: number,
): Promise<string[]> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const left = await look().catch((error: unknown) => [String(error)]);
    if (left.length === 0 || Date.now() > deadline) return left;
    await sleep(lookEveryMs);
  }

  async function look(): Promise<string[]> {
    const [row] = await postgres.query(
      `SELECT (SELECT count(*) FROM uploads WHERE status = 'OPEN') AS uploads, (SELECT count(*) FROM outbox) AS events,
        (SELECT count(*) FROM doomed_objects) AS objects`,
      [],
      databaseUrl,
    );
    const attention = Number(await redis.command('ZCARD', 'sluice:{uploads:0}:attention'));
    const dead = Number(await redis.command('ZCARD', 'sluice:{uploads:0}:dead'));
    const jobs = Number(await redis.command('HLEN', 'sluice:{uploads:0}:jobs')) - dead;
    const frames = (await chunks.command('KEYS', '*')) as string[];
    const waiting: Record<string, unknown> = { ...row, attention, jobs };
    const left = Object.entries(waiting).filter(([, count]) => Number(count) > 0);
    // Frames that nobody committed take a minute; they are not waited for, and the checker knows them.
    return left.map(([name, count]) => `${String(count)} ${name} (and ${frames.length} frames)`);
  }
}
