// Jobs that wait for other jobs: a list, a tree, any graph without a cycle, also across queues and cluster slots.
//
// A job that waits is `blocked` and keeps the set of those it still waits for (`deps`); each of those keeps a list of who
// waits for it (`dependents`). When one ends, the script that ends it leaves a notice in its own slot (`chained`), in the
// same step. A worker then delivers the notice to the slot of the waiting job (unblock.lua) and removes it. A notice that
// is delivered twice changes nothing, so it does not matter when a worker dies in between.
//
// No step spans two slots, so a chain is made in several, and whoever makes it may die after each of them:
//
//   1 register  jobs outside the chain that are waited for learn who will wait; from now on their end is remembered
//   2 keep      the whole specification is written to one slot
//   3 add       first the jobs that wait (blocked, nothing can run them), then those that do not
//   4 wire      each job that is waited for learns of those who wait; one that has ended meanwhile is a notice at once
//   5 drop      the specification is removed
//
// Every step may be repeated: ids are made beforehand, and adding a known id changes nothing. A specification that is
// still there after ten seconds is therefore simply carried out again by a worker's sweep. After half an hour, when the
// memory of the first jobs' ids may soon end, it is cancelled instead.
//
// What a dependency returned is read with `queue.result(id)`: jobs of a chain are remembered for at least an hour after
// their end, with their results; `keepResultMs` makes it longer.
import { failPoint, isSluiceError } from '@sluice/base';
import { withOwnId } from './durability.js';
import type { AddAnswer, NewJob } from './call.js';
import { queueErrors } from './errors.js';
import { randomName, stemOf } from './ids.js';
import { defaultPrefix, partitionKeys } from './keys.js';
import { checkName } from './options.js';
import type { AddOptions, FailurePolicy, JobRef } from './options.js';
import { Partition, partitionOf } from './partition.js';
import { Producer } from './producer.js';
import type { AddedJob, AnyQueue, Queue } from './queue.js';

const maxNodes = 1_000;
/** Dependencies of one job; a script takes them in one call. */
const maxDependencies = 1_000;
const maxSpecBytes = 16 * 1024 * 1024;
/** The end of every job that takes part in a chain is remembered for at least this long. */
const rememberMs = 3_600_000;
/** Whoever makes a chain has this long before a sweep helps; also the pause between two sweeps of one chain. */
const sweepPauseMs = 10_000;
/** Well below `rememberMs`: a job that ended and was forgotten would be added a second time. */
const finishWithinMs = rememberMs / 2;
const chainsPerSweep = 10;
const noticesPerCall = 100;
/** Dependencies of one blocked job that a sweep asks again. */
const refsAskedAgain = 10;
const addDeadlineMs = 10_000;

export interface ChainNode<Data> {
  /** How other nodes of this chain name it. */
  key: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- what its handlers return does not matter here
  queue: Queue<Data, any>;
  data: NoInfer<Data>;
  options?: Omit<AddOptions, 'after' | 'onDependencyFailure' | 'durability' | 'requestId' | 'unique'>;
  /** Keys of this chain, or jobs outside it. */
  after?: (string | JobRef)[];
  onDependencyFailure?: FailurePolicy;
}

export interface CreatedChain {
  id: string;
  /** By the keys of the nodes. */
  jobs: Record<string, AddedJob>;
}

/**
 * Makes a whole chain. The jobs' ids are `<chain id>/<key>` unless their options say otherwise. With an id of your own the
 * call may be repeated: what is there already stays as it is.
 */
export async function createChain<const Datas extends readonly unknown[]>(
  nodes: { [Index in keyof Datas]: ChainNode<Datas[Index]> },
  options: { id?: string } = {},
  step: FailPoint = neverFail,
): Promise<CreatedChain> {
  const list = nodes as unknown as ChainNode<unknown>[];
  const id = options.id ?? randomName();
  checkName('id', id);
  checkNodes(id, list);
  const queues = new Map<string, AnyQueue>(list.map(({ queue }) => [queue.name, queue]));
  await Promise.all([...queues.values()].map((queue) => queue.ready()));
  const planned = await Promise.all(list.map((node) => planNode(id, node)));
  const byKey = new Map(list.map(({ key }, i) => [key, planned[i]!]));
  await Promise.all(
    list.map(async (node, i) => {
      const refs = (node.after ?? []).map(async (after) =>
        typeof after === 'string' ? refOf(byKey.get(after)!) : register(node.queue, after, planned[i]!),
      );
      planned[i]!.refs = [...new Set(await Promise.all(refs))];
    }),
  );
  // Workers of the home slot's queue look after the chain. One that starts it has workers, or nothing ever starts.
  const home = planned.find((node) => node.refs.length === 0) ?? planned[0]!;
  const answers = await make(`chain:${id}`, planned, home, queues, step);
  const jobs = list.map(({ key }, i) => [key, answers[i]!] as const);
  return { id, jobs: Object.fromEntries(jobs) };
}

/** Adds one job that waits for others: a chain of one. */
export async function dependOn(
  queue: AnyQueue,
  job: NewJob,
  after: readonly JobRef[],
  policy: FailurePolicy,
  step: FailPoint = neverFail,
): Promise<AddedJob> {
  const own = withOwnId(job, rememberMs);
  const node: PlannedNode = {
    queue: queue.name,
    partition: queue.partitionOfJob(own).index,
    job: own,
    refs: [],
    policy,
  };
  checkPolicy(policy);
  checkWaiting(`job ${job.id}`, after.length, (job.options.delayMs ?? job.options.runAtMs) !== undefined);
  if (after.some((ref) => ref.queue === queue.name && ref.id === job.id)) {
    throw invalid(`job ${job.id} waits for itself`);
  }
  node.refs = [...new Set(await Promise.all(after.map((ref) => register(queue, ref, node))))];
  const [answer] = await make(`job:${job.id}`, [node], node, new Map([[queue.name, queue]]), step);
  return answer!;
}

/** Completes chains whose maker died, or cancels them when they are too old for that. Called by workers now and then. */
export async function sweepChains(queue: AnyQueue, partition: Partition): Promise<void> {
  const args = { limit: chainsPerSweep, pauseMs: sweepPauseMs };
  const [nowMs, ...found] = (await partition.run('chainTake', args)) as [number, ...Buffer[]];
  for (let i = 0; i < found.length; i += 2) {
    failPoint('chain.taken');
    const [chain, kept] = [found[i]!.toString(), found[i + 1]!.toString()];
    await sweepChain(queue, partition, chain, kept, nowMs);
  }
  await askAgain(queue, partition);
}

/** Brings the notices of one partition to those who wait. At least once; what fails stays for the next look. */
export async function deliverNotices(queue: AnyQueue, partition: Partition): Promise<void> {
  const pending = new Map([[partition.keys.chained, { name: queue.name, partition }]]);
  for (const from of pending.values()) {
    const { keys, link } = from.partition;
    pending.delete(keys.chained);
    const notices = (await link.call('LRANGE', [keys.chained, 0, noticesPerCall - 1])) as Buffer[];
    const outcomes = await Promise.allSettled(
      notices.map(async (notice) => {
        failPoint('notice.read');
        const { target, answer } = await deliver(queue, from, notice);
        failPoint('notice.delivered');
        await link.call('LREM', [keys.chained, 1, notice]);
        // A job that was cancelled has notices of its own, and its queue may be one without workers.
        return answer === 'CANCELLED' ? target : undefined;
      }),
    );
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') throw outcome.reason;
      if (outcome.value) pending.set(outcome.value.partition.keys.chained, outcome.value);
    }
    if (notices.length === noticesPerCall) pending.set(keys.chained, from);
  }
}

/** `queue:partition/id`: a queue's name has neither a colon nor a slash; an id may have both. */
export function parseRef(ref: string): JobRef & { partition: number } {
  const slash = ref.indexOf('/');
  const [queue, partition] = ref.slice(0, slash).split(':') as [string, string];
  return { queue, partition: Number(partition), id: ref.slice(slash + 1) };
}

/** Called after each step; tests throw from it to see what happens when the maker dies there. @internal */
export type FailPoint = (step: string) => Promise<void> | void;
const neverFail: FailPoint = () => {};

interface PlannedNode {
  queue: string;
  partition: number;
  job: NewJob;
  refs: string[];
  policy: FailurePolicy;
}

type Waiter = Pick<PlannedNode, 'queue' | 'partition'> & { job: { id: string } };

function refOf({ queue, partition, job }: Waiter): string {
  return `${queue}:${partition}/${job.id}`;
}

function idOf(chain: string, { key, options }: ChainNode<unknown>): string {
  return options?.id ?? `${chain}/${key}`;
}

async function planNode(chain: string, node: ChainNode<unknown>): Promise<PlannedNode> {
  const { queue, data, options, onDependencyFailure = 'cancel' } = node;
  const job = withOwnId(await queue.prepare(data, { ...options, id: idOf(chain, node) }), rememberMs);
  const partition = queue.partitionOfJob(job).index;
  return { queue: queue.name, partition, job, refs: [], policy: onDependencyFailure };
}

// ── Checking ────────────────────────────────────────────────────────────────────────────────────────────────────────────

function invalid(reason: string): Error {
  return queueErrors.CHAIN_INVALID({ reason });
}

function checkNodes(chain: string, nodes: readonly ChainNode<unknown>[]): void {
  if (nodes.length === 0) throw invalid('it has no jobs');
  if (nodes.length > maxNodes) throw invalid(`it has ${nodes.length} jobs; the limit is ${maxNodes}`);
  const keys = new Set(nodes.map(({ key }) => key));
  checkOnce('key', nodes, ({ key }) => key);
  checkOnce('id', nodes, (node) => `${node.queue.name}/${idOf(chain, node)}`);
  const address = addressOf(nodes[0]!.queue);
  for (const { key, queue, options, after = [], onDependencyFailure } of nodes) {
    checkName('key', key);
    // Otherwise chain "a" with "b/c" and chain "a/b" with "c" would mean the same job.
    if (key.includes('/')) throw invalid(`the key "${key}" has a slash`);
    if (addressOf(queue) !== address) throw invalid(`queue ${queue.name} has another Redis or prefix`);
    if (onDependencyFailure !== undefined) checkPolicy(onDependencyFailure);
    if (options && 'unique' in options) throw invalid(`"${key}" has a unique key; give it an id instead`);
    checkWaiting(`"${key}"`, after.length, (options?.delayMs ?? options?.runAt) !== undefined);
    const missing = after.filter((name) => typeof name === 'string').find((name) => !keys.has(name));
    if (missing !== undefined) throw invalid(`"${key}" waits for "${missing}", which is not in it`);
  }
  checkCycles(nodes);
}

function checkOnce(
  what: string,
  nodes: readonly ChainNode<unknown>[],
  nameOf: (node: ChainNode<unknown>) => string,
) {
  const names = nodes.map(nameOf);
  const twice = names.find((name, i) => names.indexOf(name) < i);
  if (twice !== undefined) throw invalid(`the ${what} "${twice}" stands for two jobs`);
}

/** Queues of one chain reach each other's keys over one connection. */
function addressOf(queue: AnyQueue): string {
  return JSON.stringify([queue.options.redis, queue.options.prefix ?? defaultPrefix]);
}

function checkPolicy(policy: FailurePolicy): void {
  if (!['cancel', 'run', 'wait'].includes(policy)) {
    const allowed = "'cancel', 'run' or 'wait'";
    throw queueErrors.OPTION_INVALID({ option: 'onDependencyFailure', value: policy, allowed });
  }
}

function checkWaiting(who: string, dependencies: number, waitsForTime: boolean): void {
  if (dependencies > maxDependencies) {
    throw invalid(`${who} waits for ${dependencies} jobs; the limit is ${maxDependencies}`);
  }
  if (dependencies > 0 && waitsForTime) {
    throw invalid(`${who} waits for other jobs and for a time; a job can wait for one or the other`);
  }
}

/** Takes away what waits for nobody, again and again; what cannot be taken away is a cycle. */
function checkCycles(nodes: readonly ChainNode<unknown>[]): void {
  const waitsFor = new Map(
    nodes.map(({ key, after }) => [key, new Set(after?.filter((name) => typeof name === 'string'))]),
  );
  const waiters = new Map<string, string[]>(nodes.map(({ key }) => [key, []]));
  for (const [key, names] of waitsFor) for (const name of names) waiters.get(name)!.push(key);
  const free = [...waitsFor].filter(([, names]) => names.size === 0).map(([key]) => key);
  for (let key = free.pop(); key !== undefined; key = free.pop()) {
    waitsFor.delete(key);
    for (const waiter of waiters.get(key)!) {
      const names = waitsFor.get(waiter)!;
      names.delete(key);
      if (names.size === 0) free.push(waiter);
    }
  }
  if (waitsFor.size > 0) throw invalid(`"${[...waitsFor.keys()].join('", "')}" wait for each other`);
}

// ── Making ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A job outside the chain learns who will wait for it. Returns where it is. */
async function register(queue: AnyQueue, { queue: name, id }: JobRef, waiter: PlannedNode): Promise<string> {
  const count = name === queue.name ? queue.partitions.length : await countPartitions(queue, name);
  // The id says where it should be, but a group or a unique key may have chosen another partition.
  for (let i = 0; i < count; i++) {
    const partition = (partitionOf(stemOf(id), count) + i) % count;
    const word = await tellDependency(queue, { queue: name, partition, id }, refOf(waiter));
    if (word !== 'UNKNOWN') return refOf({ queue: name, partition, job: { id } });
  }
  throw queueErrors.UNKNOWN_DEPENDENCY({ queue: name, id });
}

/** 0 when there is no such queue. */
async function countPartitions(queue: AnyQueue, name: string): Promise<number> {
  const { keys, link } = partitionAt(queue, name, 0);
  return Number(await link.call('HGET', [keys.cfg, 'partitions']));
}

async function make(
  chain: string,
  nodes: PlannedNode[],
  home: PlannedNode,
  queues: Map<string, AnyQueue>,
  step: FailPoint,
): Promise<AddAnswer[]> {
  const queue = queues.get(home.queue)!;
  const partition = queue.partitions[home.partition]!;
  const spec = writeSpec(nodes);
  if (spec.length > maxSpecBytes) {
    throw invalid(`its jobs have ${spec.length} bytes; the limit is ${maxSpecBytes}`);
  }
  const jobs = nodes.map((node) => ({ queue: node.queue, id: node.job.id }));
  failPoint('chain.registered');
  try {
    await partition.run('chainKeep', { chain, spec, pauseMs: sweepPauseMs });
  } catch (error) {
    // Full memory refuses the specification itself, before there is anything.
    const cause = error;
    if (isSluiceError(error, 'REDIS_FULL')) throw queueErrors.QUEUE_FULL({ queue: queue.name }, { cause });
    throw queueErrors.CHAIN_UNKNOWN({ chain, jobs }, { cause });
  }
  try {
    failPoint('chain.kept');
    await step('kept');
    const answers = await carryOut(queue, nodes, queues, step);
    await partition.run('chainDrop', { chain });
    failPoint('chain.dropped');
    await step('dropped');
    return answers;
  } catch (error) {
    throw queueErrors.CHAIN_UNKNOWN({ chain, jobs }, { cause: error });
  }
}

/** Adds and wires the jobs of a specification. Everything in it may have been done before. */
async function carryOut(
  queue: AnyQueue,
  nodes: PlannedNode[],
  queues: Map<string, AnyQueue>,
  step: FailPoint,
): Promise<AddAnswer[]> {
  const answers = new Map<PlannedNode, AddAnswer>();
  const waiting = nodes.filter((node) => node.refs.length > 0);
  const free = nodes.filter((node) => node.refs.length === 0);
  for (const group of [...byPartition(waiting), ...byPartition(free)]) {
    const { queue: name, partition } = group[0]!;
    const batch = producerAt(queue, queues, name, partition).gather();
    group.forEach(({ job, refs, policy }, i) => batch.add({ ...job, after: { refs, policy } }, i));
    for (const [i, answer] of await batch.send()) answers.set(group[i]!, answer);
    failPoint('chain.added');
    await step('added');
  }
  const wiring: Promise<void>[] = [];
  for (const node of waiting) {
    // A unique key was taken by another job: this one was not added, and waits for nobody.
    if (answers.get(node)!.id !== node.job.id) continue;
    for (const ref of node.refs) {
      await step('wiring');
      wiring.push(wire(queue, node, ref));
    }
  }
  await Promise.all(wiring);
  failPoint('chain.wired');
  await step('wired');
  return nodes.map((node) => answers.get(node)!);
}

function byPartition(nodes: PlannedNode[]): PlannedNode[][] {
  const groups = new Map<string, PlannedNode[]>();
  for (const node of nodes) {
    const name = `${node.queue}:${node.partition}`;
    const group = groups.get(name);
    if (group) group.push(node);
    else groups.set(name, [node]);
  }
  return [...groups.values()];
}

async function wire(queue: AnyQueue, node: PlannedNode, ref: string): Promise<void> {
  const word = await tellDependency(queue, parseRef(ref), refOf(node));
  // Nobody remembers how it ended: only when a sweep comes after an hour. That counts as cancelled.
  await settleRef(queue, node, ref, word === 'UNKNOWN' ? 'cancelled' : word);
}

async function settleRef(
  queue: AnyQueue,
  { queue: name, partition, job }: Waiter,
  ref: string,
  outcome: string,
) {
  if (outcome === 'WAITING') return;
  await partitionAt(queue, name, partition).run('unblock', { id: job.id, ref, outcome });
}

async function tellDependency(
  queue: AnyQueue,
  at: JobRef & { partition: number },
  target: string,
): Promise<string> {
  const partition = partitionAt(queue, at.queue, at.partition);
  return String(await partition.run('depend', { id: at.id, target, rememberMs }));
}

/** Any partition of any queue that shares this queue's Redis and prefix. */
function partitionAt(queue: AnyQueue, name: string, index: number): Partition {
  if (name === queue.name) return queue.partitions[index]!;
  const { link, clock } = queue.partitions[0]!;
  return new Partition(index, partitionKeys(queue.options.prefix ?? defaultPrefix, name, index), link, clock);
}

function producerAt(queue: AnyQueue, queues: Map<string, AnyQueue>, name: string, index: number): Producer {
  const known = queues.get(name);
  if (known) return known.producerFor(known.partitions[index]!);
  return new Producer(name, partitionAt(queue, name, index), addDeadlineMs);
}

// ── Sweeping ────────────────────────────────────────────────────────────────────────────────────────────────────────────

async function sweepChain(queue: AnyQueue, partition: Partition, chain: string, kept: string, nowMs: number) {
  const ageMs = nowMs - Number.parseInt(kept, 10);
  const fields = { queue: queue.name, chain, ageMs };
  try {
    const nodes = readSpec(kept.slice(kept.indexOf(' ') + 1));
    if (ageMs < finishWithinMs) await carryOut(queue, nodes, new Map([[queue.name, queue]]), neverFail);
    else await cancelAll(queue, nodes);
    queue.logger.warn(fields, `a half-made chain was ${ageMs < finishWithinMs ? 'completed' : 'cancelled'}`);
  } catch (error) {
    queue.logger.error({ ...fields, error }, 'a half-made chain could be neither completed nor cancelled');
    // The next sweep tries again, but not for ever.
    if (ageMs < rememberMs) return;
  }
  await partition.run('chainDrop', { chain });
}

async function cancelAll(queue: AnyQueue, nodes: PlannedNode[]): Promise<void> {
  await Promise.all(
    nodes.map(({ queue: name, partition, job }) =>
      partitionAt(queue, name, partition).run('cancel', { id: job.id, keepMs: rememberMs }),
    ),
  );
}

/**
 * A failover may lose the last moments of one slot and not of another: a notice that was delivered, and removed, may be
 * undone where it was delivered. So one of the blocked jobs, at random, asks again how those ended for whom it waits.
 */
async function askAgain(queue: AnyQueue, { index, keys, link }: Partition): Promise<void> {
  const id = (await link.call('HRANDFIELD', [keys.blocked])) as Buffer | null;
  if (!id) return;
  const refs = (await link.call('SRANDMEMBER', [`${keys.deps}${id.toString()}`, refsAskedAgain])) as Buffer[];
  const waiter = { queue: queue.name, partition: index, job: { id: id.toString() } };
  for (const ref of refs) {
    const word = await tellDependency(queue, parseRef(ref.toString()), refOf(waiter));
    // Whoever is not known may not be there yet, or its notice is still on its way.
    if (word !== 'UNKNOWN') await settleRef(queue, waiter, ref.toString(), word);
  }
}

// ── Specifications and notices ──────────────────────────────────────────────────────────────────────────────────────────

type StoredNode = Omit<PlannedNode, 'job'> & { job: Omit<NewJob, 'payload'>; text?: string; base64?: string };

function writeSpec(nodes: PlannedNode[]): Buffer {
  const stored = nodes.map(({ job: { payload, ...job }, ...node }): StoredNode => {
    if (typeof payload === 'string') return { ...node, job, text: payload };
    return { ...node, job, base64: Buffer.from(payload).toString('base64') };
  });
  return Buffer.from(JSON.stringify(stored));
}

function readSpec(text: string): PlannedNode[] {
  return (JSON.parse(text) as StoredNode[]).map(({ job, text, base64, ...node }) => {
    return { ...node, job: { ...job, payload: text ?? Buffer.from(base64!, 'base64') } };
  });
}

interface Notice {
  /** Who waits. */
  target: string;
  /** Who has ended, in the notice's own partition. */
  id: string;
  outcome: 'done' | 'cancelled' | 'dead';
}

async function deliver(queue: AnyQueue, from: { name: string; partition: Partition }, bytes: Buffer) {
  const notice = JSON.parse(bytes.toString()) as Notice;
  const target = parseRef(notice.target);
  const partition = partitionAt(queue, target.queue, target.partition);
  const ref = `${from.name}:${from.partition.index}/${notice.id}`;
  const answer = String(await partition.run('unblock', { id: target.id, ref, outcome: notice.outcome }));
  return { target: { name: target.queue, partition }, answer };
}
