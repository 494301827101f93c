// The Redis of a run, in one of three topologies, and what can be done to it. A single server is reached through a proxy per
// process, so that a fault of the network hits whom it is meant for. Sentinels and clusters tell clients the addresses of their
// servers, which no proxy can stand in front of; there, connections are dropped by the servers themselves.
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster, Redis } from 'ioredis';
import {
  keepTemporaryFilesInMemory,
  startCluster,
  startProxy,
  startRedis,
  startSentinel,
  untilFollowing,
} from '@sluice/testbed';
import type { Proxy, RedisServer } from '@sluice/testbed';
import type { Random } from '@sluice/testbed/random';

export type Topology = 'single' | 'sentinel' | 'cluster';
export const topologies: readonly Topology[] = ['single', 'sentinel', 'cluster'];

const rawTimeoutMs = 400;
const clusterPartitions = 3;

export interface Stage {
  readonly topology: Topology;
  readonly partitions: number;
  /** Replicas that an add waits for before it counts as accepted. */
  readonly replicas: number;
  readonly url: string;
  /** A client with nothing of ours in it, past all proxies. */
  readonly raw: Redis | Cluster;
  /** All servers that hold keys now. */
  masters(): Promise<RedisServer[]>;
  /** Undefined where no proxy can stand. */
  openProxy(): Promise<Proxy | undefined>;
  killRedis(downMs: number): Promise<void>;
  pauseRedis(ms: number): Promise<void>;
  flushScripts(): Promise<void>;
  /** The servers close the connections of all clients. */
  dropConnections(): Promise<void>;
  failOver(): Promise<void>;
  reshard(random: Random): Promise<void>;
  stop(): Promise<void>;
}

export async function openStage(topology: Topology, queue: string): Promise<Stage> {
  keepTemporaryFilesInMemory();
  if (topology === 'sentinel') return openSentinel();
  if (topology === 'cluster') return openCluster(queue);
  return openSingle();
}

const rawOptions = {
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  commandTimeout: rawTimeoutMs,
  retryStrategy: () => 50,
};

/**
 * With `everysec` Redis holds writes back for up to two seconds while the disk is busy with the last fsync, and answers nonetheless: to
 * kill it then is to lose what was accepted. Who wants to kill Redis and lose nothing has to say `always`.
 */
export const writesBeforeItAnswers = { appendfsync: 'always' };

async function openSingle(): Promise<Stage> {
  const server = await startRedis({ config: writesBeforeItAnswers });
  const raw = new Redis({ ...rawOptions, host: server.host, port: server.port });
  const proxies: Proxy[] = [];
  return {
    ...common([server], raw),
    topology: 'single',
    partitions: 1,
    replicas: 0,
    url: server.url,
    masters: async () => [server],
    openProxy: async () => {
      const proxy = await startProxy(server.port);
      proxies.push(proxy);
      return proxy;
    },
    failOver: () => impossible('single'),
    reshard: () => impossible('single'),
    stop: async () => {
      raw.disconnect();
      await Promise.all(proxies.map((proxy) => proxy.stop()));
      await server.stop();
    },
  };
}

async function openSentinel(): Promise<Stage> {
  // On a busy machine half a second of silence is no reason to pass over the only replica.
  const setup = await startSentinel({ replicas: 1, sentinels: 3, downAfterMs: 1_000 });
  const raw = new Redis({
    ...rawOptions,
    sentinels: setup.sentinels,
    name: setup.name,
    sentinelRetryStrategy: () => 50,
  });
  return {
    ...common(setup.servers, raw),
    topology: 'sentinel',
    partitions: 1,
    replicas: 1,
    url: setup.url,
    masters: async () => [await setup.master()],
    openProxy: async () => undefined,
    failOver: async () => {
      const old = await setup.master();
      await setup.failOver();
      await setup.takeBack(old);
    },
    reshard: () => impossible('sentinel'),
    stop: async () => {
      raw.disconnect();
      await setup.stop();
    },
  };
}

async function openCluster(queue: string): Promise<Stage> {
  const cluster = await startCluster({ masters: 3, replicasPer: 1 });
  const { retryStrategy: _, ...redisOptions } = rawOptions;
  const raw = new Cluster(cluster.seeds, {
    redisOptions,
    enableOfflineQueue: false,
    slotsRefreshInterval: 1_000,
    clusterRetryStrategy: () => 50,
  });
  const slots = () =>
    Promise.all(
      Array.from({ length: clusterPartitions }, (_, partition) => cluster.slotOf(`{${queue}:${partition}}`)),
    );
  const masters = async () => [
    ...new Set(await Promise.all((await slots()).map((slot) => cluster.ownerOf(slot)))),
  ];
  return {
    ...common(cluster.nodes, raw),
    topology: 'cluster',
    partitions: clusterPartitions,
    replicas: 1,
    url: cluster.url,
    masters,
    openProxy: async () => undefined,
    failOver: async () => {
      const [slot] = await slots();
      const old = await cluster.ownerOf(slot!);
      const owner = await cluster.failOver(slot!);
      await old.restart();
      // A second failover before the first one's loser has caught up would lose what nobody ever promised to keep.
      await untilFollowing(old, owner);
      await cluster.waitHealthy();
    },
    reshard: async (random) => {
      const slot = random.pick(await slots());
      const owner = await cluster.ownerOf(slot);
      const others = (await masters()).filter((node) => node !== owner);
      // When all partitions live on one master, any other will do.
      if (others.length === 0) others.push(await cluster.ownerOf((slot + 8_192) % 16_384));
      await cluster.moveSlots(slot, slot, random.pick(others));
    },
    stop: async () => {
      raw.disconnect();
      await cluster.stop();
    },
  };
}

/** What is done to servers in the same way everywhere. */
function common(servers: readonly RedisServer[], raw: Redis | Cluster) {
  raw.on('error', () => {});
  const running = () => servers.filter((server) => server.running);
  return {
    raw,
    killRedis: async (downMs: number) => {
      const all = running();
      await Promise.all(all.map((server) => server.kill9()));
      await sleep(downMs);
      await Promise.all(all.map((server) => server.restart()));
    },
    pauseRedis: async (ms: number) => {
      const all = running();
      for (const server of all) server.pause();
      await sleep(ms);
      for (const server of all) server.resume();
    },
    flushScripts: async () => {
      await Promise.all(running().map((server) => server.command('SCRIPT', 'FLUSH')));
    },
    dropConnections: async () => {
      await Promise.all(running().map(dropOurs));
    },
  };
}

/** The queue names its connections; those of the conductor stay. */
async function dropOurs(server: RedisServer): Promise<void> {
  const list = String(await server.command('CLIENT', 'LIST'));
  for (const [, id] of list.matchAll(/^id=(\d+) .* name=sluice/gm))
    await server.command('CLIENT', 'KILL', 'ID', id!);
}

function impossible(topology: Topology): Promise<never> {
  return Promise.reject(new Error(`not possible with ${topology}`));
}
