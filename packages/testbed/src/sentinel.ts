/**
 * A master with replicas, watched by real sentinels, and a way to force the failover they exist for.
 *
 * Sentinel's own periods are made for data centres (it asks for the list of replicas every ten seconds); they are
 * shortened here, so that a failover takes about two seconds and proves the same.
 */
import { untilFollowing } from './following.js';
import { startRedis, type RedisServer } from './redisServer.js';
import { waitUntil } from './waitUntil.js';

const SETTLE_TIMEOUT_MS = 20_000;
const FAILOVER_TIMEOUT_MS = 30_000;
/**
 * How long a master may be silent while nobody has killed it. A busy machine can keep a server waiting for seconds, and
 * a master that is deposed for that goes on taking writes until it is told, and then throws them away.
 */
const PATIENCE_MS = 60_000;
/** Redis's own default. */
const REPLICA_PRIORITY = 100;

export interface SentinelOptions {
  replicas?: number;
  sentinels?: number;
  /** How long a master that `failOver` has killed may be silent before a sentinel calls it down. */
  downAfterMs?: number;
  /** More configuration for the master and its replicas. */
  config?: Record<string, string | number>;
}

export interface SentinelSetup {
  /** The name the sentinels know the master by. */
  readonly name: string;
  /** Master and replicas; roles change with failovers. */
  readonly servers: readonly RedisServer[];
  /** `redis+sentinel://`, the addresses of the sentinels and the name. */
  readonly url: string;
  readonly sentinels: { host: string; port: number }[];
  /** The server all sentinels call master. */
  master(): Promise<RedisServer>;
  /** Kills the master with kill -9 and waits for the new one. Only then do the sentinels depose a master. */
  failOver(): Promise<RedisServer>;
  /** Starts a killed master again, as a replica that nobody elects before it has caught up, and waits until it has. */
  takeBack(server: RedisServer): Promise<void>;
  stop(): Promise<void>;
}

export async function startSentinel(options: SentinelOptions = {}): Promise<SentinelSetup> {
  const { replicas = 1, sentinels: sentinelCount = 3, downAfterMs = 500, config = {} } = options;
  const name = 'sluice';
  const servers: RedisServer[] = [];
  const sentinels: RedisServer[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all([...sentinels, ...servers].map((server) => server.stop()));
  };
  try {
    const master = await startRedis({ config });
    servers.push(master);
    for (let i = 0; i < replicas; i++) {
      servers.push(await startRedis({ config: { replicaof: `${master.host} ${master.port}`, ...config } }));
    }
    await waitUntil('the replicas follow', async () => (await onlineReplicas(master)) === replicas);
    for (let i = 0; i < sentinelCount; i++) {
      sentinels.push(await startOneSentinel(name, master, sentinelCount));
    }
    await waitUntil('the sentinels know each other', () => allKnow(sentinels, name, replicas), {
      timeoutMs: SETTLE_TIMEOUT_MS,
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    name,
    servers,
    url: `redis+sentinel://${sentinels.map(({ host, port }) => `${host}:${port}`).join(',')}/${name}`,
    sentinels: sentinels.map(({ host, port }) => ({ host, port })),
    master: () => agreedMaster(name, servers, sentinels),
    failOver: () => failOver(name, servers, sentinels, downAfterMs),
    takeBack: async (server) => takeBack(server, await agreedMaster(name, servers, sentinels)),
    stop,
  };
}

async function startOneSentinel(
  name: string,
  master: RedisServer,
  sentinelCount: number,
): Promise<RedisServer> {
  const quorum = Math.floor(sentinelCount / 2) + 1;
  const sentinel = await startRedis({
    sentinel: [
      `sentinel monitor ${name} ${master.host} ${master.port} ${quorum}`,
      `sentinel down-after-milliseconds ${name} ${PATIENCE_MS}`,
      `sentinel failover-timeout ${name} 5000`,
      `sentinel parallel-syncs ${name} 1`,
    ],
  });
  await sentinel.command('SENTINEL', 'DEBUG', 'info-period', 500, 'publish-period', 200, 'ask-period', 200);
  return sentinel;
}

async function onlineReplicas(master: RedisServer): Promise<number> {
  const replication = await master.info('replication');
  return Object.values(replication).filter((value) => value.includes('state=online')).length;
}

async function allKnow(sentinels: RedisServer[], name: string, replicas: number): Promise<boolean> {
  const known = await Promise.all(
    sentinels.map(async (sentinel) => {
      const fields = (await sentinel.command('SENTINEL', 'MASTER', name)) as string[];
      const value = (field: string): number => Number(fields[fields.indexOf(field) + 1]);
      return value('num-slaves') === replicas && value('num-other-sentinels') === sentinels.length - 1;
    }),
  );
  return known.every(Boolean);
}

async function agreedMaster(
  name: string,
  servers: RedisServer[],
  sentinels: RedisServer[],
): Promise<RedisServer> {
  const answers = await Promise.all(
    sentinels.map((sentinel) => sentinel.command('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name)),
  );
  const ports = new Set(answers.map((answer) => Number((answer as [string, string])[1])));
  const [port] = ports;
  const master = servers.find((server) => server.port === port);
  if (ports.size !== 1 || master === undefined)
    throw new Error(`the sentinels disagree: ${[...ports].join(', ')}`);
  return master;
}

async function failOver(
  name: string,
  servers: RedisServer[],
  sentinels: RedisServer[],
  downAfterMs: number,
): Promise<RedisServer> {
  const old = await agreedMaster(name, servers, sentinels);
  await old.kill9();
  let master = old;
  try {
    await setPatience(name, sentinels, downAfterMs);
    await waitUntil(
      'the sentinels name a new master and it takes writes',
      async () => {
        master = await agreedMaster(name, servers, sentinels);
        return master !== old && (await master.info('replication'))['role'] === 'master';
      },
      { timeoutMs: FAILOVER_TIMEOUT_MS },
    );
  } finally {
    await setPatience(name, sentinels, PATIENCE_MS);
  }
  return master;
}

async function setPatience(name: string, sentinels: RedisServer[], ms: number): Promise<void> {
  await Promise.all(
    sentinels.map((sentinel) => sentinel.command('SENTINEL', 'SET', name, 'down-after-milliseconds', ms)),
  );
}

/**
 * Started as it was, it would be a master with old data until the sentinels demote it. They may elect it in that time
 * whatever its priority is, because INFO tells the priority of replicas only; then all that was written since its death
 * is gone. A replica from the first moment tells them its priority, and with 0 it is never elected.
 */
async function takeBack(server: RedisServer, master: RedisServer): Promise<void> {
  await server.restart({ replicaof: `${master.host} ${master.port}`, 'replica-priority': 0 });
  await untilFollowing(server, master);
  await server.command('CONFIG', 'SET', 'replica-priority', REPLICA_PRIORITY);
}
