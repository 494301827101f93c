/**
 * Waits until a replica is in step with its master, so that the master can be killed and little is lost.
 *
 * That the link is up says less: the replica has loaded a copy of the data, but what was written since the copy began may
 * not have been sent yet, on a busy machine for half a second and more. So what counts is that the replica has acknowledged
 * something that was written after its link was up. A master that is idle writes too, though seldom: it pings.
 */
import type { RedisServer } from './redisServer.js';
import { waitUntil } from './waitUntil.js';

const FOLLOW_TIMEOUT_MS = 30_000;

export async function untilFollowing(replica: RedisServer, master: RedisServer): Promise<void> {
  const timeoutMs = FOLLOW_TIMEOUT_MS;
  const isUp = async () => (await replica.info('replication'))['master_link_status'] === 'up';
  await waitUntil('the replica has loaded a copy', isUp, { timeoutMs });
  const written = Number((await master.info('replication'))['master_repl_offset']);
  const isInStep = async () => (await acknowledgedBy(replica, master)) > written;
  await waitUntil('the replica has acknowledged what came after the copy', isInStep, { timeoutMs });
}

/** What the master has heard from the replica: `slave0:ip=…,port=…,state=online,offset=…,lag=…`. */
async function acknowledgedBy(replica: RedisServer, master: RedisServer): Promise<number> {
  const lines = Object.values(await master.info('replication'));
  const own = lines.find((line) => line.includes(`port=${replica.port},`));
  return Number(/\boffset=(\d+)/.exec(own ?? '')?.[1] ?? 0);
}
