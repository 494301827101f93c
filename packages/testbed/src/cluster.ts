/**
 * A real Redis Cluster of local processes: masters with replicas, made with the same commands an operator uses.
 *
 * Slots are dealt out evenly, in one range per master. Slots can be moved while clients work, one slot at a time
 * in the order Redis prescribes (importing, migrating, keys, node), and a master can be killed so that its
 * replica takes over.
 */
import { Redis } from 'ioredis';
import { freePort } from './freePort.js';
import { startRedis, type RedisServer } from './redisServer.js';
import { waitUntil } from './waitUntil.js';

const SLOT_COUNT = 16_384;
const FORM_TIMEOUT_MS = 30_000;
const FAILOVER_TIMEOUT_MS = 30_000;
const KEYS_PER_MIGRATE = 100;
const MIGRATE_TIMEOUT_MS = 10_000;

export interface ClusterOptions {
  masters?: number;
  replicasPer?: number;
  /** How long a node may be silent before the others call it failed. */
  nodeTimeoutMs?: number;
  /** More configuration for every node. */
  config?: Record<string, string | number>;
}

export interface RedisCluster {
  /** All nodes: the first masters in slot order, then the replicas. Roles change with failovers. */
  readonly nodes: readonly RedisServer[];
  /** `redis+cluster://` and the addresses of the first masters. */
  readonly url: string;
  /** The same addresses for a cluster client. */
  readonly seeds: { host: string; port: number }[];
  /** The node that owns a slot now. */
  ownerOf(slot: number): Promise<RedisServer>;
  slotOf(key: string): Promise<number>;
  /** Moves slots `first`…`last` with their keys to another master while clients go on. */
  moveSlots(first: number, last: number, to: RedisServer): Promise<void>;
  /** Kills the owner of a slot and waits until a replica has taken over; returns the new owner. */
  failOver(slot: number): Promise<RedisServer>;
  /** Waits until every running node sees all slots served. */
  waitHealthy(): Promise<void>;
  stop(): Promise<void>;
}

export async function startCluster(options: ClusterOptions = {}): Promise<RedisCluster> {
  const { masters = 3, replicasPer = 1, nodeTimeoutMs = 2_000, config = {} } = options;
  const nodes: RedisServer[] = [];
  try {
    for (let i = 0; i < masters * (1 + replicasPer); i++) nodes.push(await startNode(nodeTimeoutMs, config));
    await form(nodes, masters);
  } catch (error) {
    await stopAll(nodes);
    throw error;
  }
  const seeds = nodes.slice(0, masters).map(({ host, port }) => ({ host, port }));
  return {
    nodes,
    url: `redis+cluster://${seeds.map(({ host, port }) => `${host}:${port}`).join(',')}`,
    seeds,
    ownerOf: (slot) => ownerOf(nodes, slot),
    slotOf: async (key) => Number(await anyRunning(nodes).command('CLUSTER', 'KEYSLOT', key)),
    moveSlots: (first, last, to) => moveSlots(nodes, first, last, to),
    failOver: (slot) => failOver(nodes, slot),
    waitHealthy: () => waitHealthy(nodes),
    stop: () => stopAll(nodes),
  };
}

async function startNode(
  nodeTimeoutMs: number,
  config: Record<string, string | number>,
): Promise<RedisServer> {
  return startRedis({
    config: {
      'cluster-enabled': 'yes',
      // The default bus port (port + 10,000) may be anybody's; a free one is ours.
      'cluster-port': await freePort(),
      'cluster-node-timeout': nodeTimeoutMs,
      'cluster-replica-validity-factor': 0,
      ...config,
    },
  });
}

async function form(nodes: RedisServer[], masters: number): Promise<void> {
  const [first] = nodes as [RedisServer];
  for (const [i, node] of nodes.entries()) {
    await node.command('CLUSTER', 'SET-CONFIG-EPOCH', i + 1);
    if (i < masters) {
      const from = Math.floor((SLOT_COUNT * i) / masters);
      const to = Math.floor((SLOT_COUNT * (i + 1)) / masters) - 1;
      await node.command('CLUSTER', 'ADDSLOTSRANGE', from, to);
    }
    if (i > 0) await node.command('CLUSTER', 'MEET', first.host, first.port, await busPort(first));
  }
  await waitUntil('every node knows the others', () => everyNode(nodes, knows(nodes.length)), {
    timeoutMs: FORM_TIMEOUT_MS,
  });
  for (const [i, replica] of nodes.slice(masters).entries()) {
    const masterId = String(await nodes[i % masters]!.command('CLUSTER', 'MYID'));
    await replica.command('CLUSTER', 'REPLICATE', masterId);
  }
  const replicas = nodes.slice(masters);
  const isLinked = async (node: RedisServer): Promise<boolean> =>
    (await node.info('replication'))['master_link_status'] === 'up';
  const seesReplicas = async (node: RedisServer): Promise<boolean> =>
    (await nodeTable(node)).filter(({ flags }) => flags.includes('slave')).length === replicas.length;
  await waitUntil(
    'every replica follows its master, and everybody knows',
    async () => (await everyNode(replicas, isLinked)) && (await everyNode(nodes, seesReplicas)),
    { timeoutMs: FORM_TIMEOUT_MS },
  );
  await waitHealthy(nodes);
}

async function busPort(node: RedisServer): Promise<number> {
  const [, port] = (await node.command('CONFIG', 'GET', 'cluster-port')) as [string, string];
  return Number(port);
}

function knows(count: number): (node: RedisServer) => Promise<boolean> {
  return async (node) => {
    const lines = await nodeTable(node);
    return lines.length === count && !lines.some(({ flags }) => /handshake|noaddr/.test(flags));
  };
}

async function waitHealthy(nodes: RedisServer[]): Promise<void> {
  const running = nodes.filter((node) => node.running);
  const healthy = async (node: RedisServer): Promise<boolean> => {
    const info = String(await node.command('CLUSTER', 'INFO'));
    return info.includes('cluster_state:ok') && info.includes(`cluster_slots_ok:${SLOT_COUNT}`);
  };
  await waitUntil('cluster_state is ok on every node', () => everyNode(running, healthy), {
    timeoutMs: FORM_TIMEOUT_MS,
  });
}

async function everyNode(
  nodes: RedisServer[],
  holds: (node: RedisServer) => Promise<boolean>,
): Promise<boolean> {
  return (await Promise.all(nodes.map(holds))).every(Boolean);
}

async function moveSlots(nodes: RedisServer[], first: number, last: number, to: RedisServer): Promise<void> {
  const admin = new Map<RedisServer, Redis>();
  const connect = (node: RedisServer): Redis => {
    let client = admin.get(node);
    if (client === undefined) admin.set(node, (client = new Redis({ host: node.host, port: node.port })));
    return client;
  };
  try {
    const masters = (await runningMasters(nodes)).map(connect);
    const ownerBefore = await ownersBySlot(nodes);
    for (let slot = first; slot <= last; slot++) {
      const from = ownerBefore(slot);
      if (from !== to) await moveSlot(slot, connect(from), connect(to), to, masters);
    }
  } finally {
    for (const client of admin.values()) client.disconnect();
  }
}

/** The order matters: until the new owner knows that it owns the slot, the old one must answer for it. */
async function moveSlot(
  slot: number,
  source: Redis,
  target: Redis,
  to: RedisServer,
  masters: Redis[],
): Promise<void> {
  const sourceId = String(await source.call('CLUSTER', 'MYID'));
  const targetId = String(await target.call('CLUSTER', 'MYID'));
  await target.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', sourceId);
  await source.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', targetId);
  for (;;) {
    const keys = (await source.call('CLUSTER', 'GETKEYSINSLOT', slot, KEYS_PER_MIGRATE)) as string[];
    if (keys.length === 0) break;
    await source.call('MIGRATE', to.host, to.port, '', 0, MIGRATE_TIMEOUT_MS, 'REPLACE', 'KEYS', ...keys);
  }
  await target.call('CLUSTER', 'SETSLOT', slot, 'NODE', targetId);
  await source.call('CLUSTER', 'SETSLOT', slot, 'NODE', targetId);
  // The others would learn it by gossip; telling them shortens the time of double redirects.
  const bystanders = masters.filter((master) => master !== source && master !== target);
  await Promise.all(bystanders.map((master) => master.call('CLUSTER', 'SETSLOT', slot, 'NODE', targetId)));
}

async function runningMasters(nodes: RedisServer[]): Promise<RedisServer[]> {
  const running = nodes.filter((node) => node.running);
  const roles = await Promise.all(running.map(async (node) => (await node.info('replication'))['role']));
  return running.filter((_, i) => roles[i] === 'master');
}

async function failOver(nodes: RedisServer[], slot: number): Promise<RedisServer> {
  const old = await ownerOf(nodes, slot);
  await old.kill9();
  let owner = old;
  await waitUntil(
    `a replica owns slot ${slot}`,
    async () => {
      owner = await ownerOf(nodes, slot);
      return owner !== old && owner.running;
    },
    { timeoutMs: FAILOVER_TIMEOUT_MS },
  );
  await waitHealthy(nodes);
  return owner;
}

async function ownerOf(nodes: RedisServer[], slot: number): Promise<RedisServer> {
  return (await ownersBySlot(nodes))(slot);
}

/** Each running master is asked for its own slots: what others say of it may be a gossip's length behind. */
async function ownersBySlot(nodes: RedisServer[]): Promise<(slot: number) => RedisServer> {
  const running = nodes.filter((node) => node.running);
  const claims = await Promise.all(
    running.map(async (node) => {
      const self = (await nodeTable(node)).find(({ flags }) => flags.startsWith('myself,master'));
      return { node, ranges: self?.ranges ?? [], epoch: self?.epoch ?? 0 };
    }),
  );
  // A master that came back and has not heard of its successor still claims its slots; the later epoch is right.
  claims.sort((a, b) => b.epoch - a.epoch);
  return (slot) => {
    const claim = claims.find(({ ranges }) => ranges.some(([from, to]) => from <= slot && slot <= to));
    if (claim === undefined) throw new Error(`nobody owns slot ${slot}`);
    return claim.node;
  };
}

interface NodeLine {
  flags: string;
  epoch: number;
  ranges: [number, number][];
}

/** CLUSTER NODES: `id ip:port@bus flags master ping pong epoch link range range …` */
async function nodeTable(node: RedisServer): Promise<NodeLine[]> {
  const text = String(await node.command('CLUSTER', 'NODES'));
  return text
    .trim()
    .split('\n')
    .map((line) => {
      const [, , flags = '', , , , epoch, , ...slots] = line.split(' ');
      const ranges = slots
        .filter((range) => !range.startsWith('['))
        .map((range): [number, number] => {
          const [from, to = from] = range.split('-').map(Number) as [number, number?];
          return [from, to];
        });
      return { flags, epoch: Number(epoch), ranges };
    });
}

function anyRunning(nodes: RedisServer[]): RedisServer {
  const node = nodes.find(({ running }) => running);
  if (node === undefined) throw new Error('no node of the cluster runs');
  return node;
}

async function stopAll(nodes: RedisServer[]): Promise<void> {
  await Promise.all(nodes.map((node) => node.stop()));
}
