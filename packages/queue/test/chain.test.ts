// Chains: jobs that wait for jobs, made in steps of which each may be the last.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { isSluiceError } from '@sluice/base';
import { startCluster, startRedis, waitUntil, type RedisServer } from '@sluice/testbed';
import { createChain, deliverNotices, dependOn, parseRef, sweepChains } from '../src/chain.js';
import type { ChainNode } from '../src/chain.js';
import type { FailurePolicy } from '../src/options.js';
import { GiveUp } from '../src/outcome.js';
import type { Partition } from '../src/partition.js';
import { Queue } from '../src/queue.js';
import type { AnyQueue, QueueOptions } from '../src/queue.js';
import { pack } from '../src/wire.js';

let redis: RedisServer;
let prefix = '';
let tests = 0;
const opened: AnyQueue[] = [];

before(async () => {
  redis = await startRedis();
});
after(() => redis.stop());
afterEach(async () => {
  await Promise.all(opened.splice(0).map((queue) => queue.close()));
});

function begin(): void {
  prefix = `chain${++tests}`;
}

function open(name: string, options: Partial<QueueOptions<unknown>> = {}): Queue {
  const queue = new Queue(name, { redis: redis.url, prefix, ...options });
  opened.push(queue);
  return queue;
}

/** Ends a job as a worker would, without a worker whose duties would go on at once. */
async function end(queue: Queue, id: string, outcome: 'done' | 'dead', result = ''): Promise<void> {
  const { partition, view } = await find(queue, id);
  assert.equal(view.state, 'waiting', `${id} should be waiting`);
  const { keys, link } = partition;
  await link.call('LREM', [keys.wait3, 1, id]);
  await link.call('ZREM', [keys.delayed, id]);
  const session = `test-${id}`;
  const description = '{}'.padEnd(80);
  await partition.run('open', { session, leaseMs: 10_000, description, draining: '0' });
  await link.call('HSET', [keys.active + session, id, '1']);
  const detail = JSON.stringify({ name: 'Error', message: 'broken', stack: '' });
  const item = [id, '1', outcome, 0, result, '', outcome === 'dead' ? detail : '', 'print', 'title'];
  const reply = (await partition.run('settle', { session, items: pack([item]) })) as Buffer[];
  assert.equal(String(reply[1]), 'SETTLED');
  assert.equal(String(await partition.run('close', { session })), 'CLOSED');
}

async function find(queue: Queue, id: string) {
  const view = await queue.job(id);
  assert.ok(view, `${id} should be known`);
  for (const partition of queue.partitions) {
    if (String(((await partition.run('ask', { id })) as Buffer[])[0]) !== 'UNKNOWN')
      return { partition, view };
  }
  assert.fail(`${id} is in no partition`);
}

async function stateOf(queue: Queue, id: string): Promise<string | undefined> {
  return (await queue.job(id))?.state;
}

async function deliverAll(...queues: Queue[]): Promise<void> {
  for (const queue of queues)
    for (const partition of queue.partitions) await deliverNotices(queue, partition);
}

async function noticesIn(partition: Partition): Promise<Buffer[]> {
  return (await partition.link.call('LRANGE', [partition.keys.chained, 0, -1])) as Buffer[];
}

/** Lets the sweep believe that ten seconds have passed. */
async function sweepNow(...queues: Queue[]): Promise<void> {
  for (const queue of queues) {
    for (const partition of queue.partitions) {
      const { link, keys } = partition;
      for (const chain of (await link.call('HKEYS', [keys.chains])) as Buffer[]) {
        await link.call('ZADD', [keys.chainsDue, 0, chain]);
      }
      await sweepChains(queue, partition);
    }
  }
}

async function keysLeft(): Promise<string[]> {
  const keys = (await redis.command('KEYS', `${prefix}:*`)) as string[];
  return keys.filter((key) => !/:(cfg|wake|producer:\S+|stats:\d+)$/.test(key)).sort();
}

function diamond(first: Queue, second: Queue): ChainNode<unknown>[] {
  return [
    { key: 'start', queue: first, data: 'start' },
    { key: 'left', queue: second, data: 'left', after: ['start'] },
    { key: 'right', queue: second, data: 'right', after: ['start'] },
    { key: 'finish', queue: first, data: 'finish', after: ['left', 'right'] },
  ];
}

test('a diamond over two queues with one and three partitions runs in order, and its results can be read', async () => {
  begin();
  const orders = open('orders');
  const prints = open('prints', { partitions: 3 });
  const ran: string[] = [];
  const chain = await createChain(diamond(orders, prints), { id: 'o17' });
  assert.equal(chain.jobs['left']!.id, 'o17/left');
  assert.equal(await stateOf(orders, 'o17/finish'), 'blocked');
  prints.work((job) => {
    ran.push(job.data as string);
    return { made: job.data };
  });
  orders.work(async (job) => {
    ran.push(job.data as string);
    if (job.data !== 'finish') return undefined;
    const left = (await prints.result('o17/left')) as { made: string };
    return `${left.made} is there`;
  });
  assert.equal(await orders.result('o17/finish', { timeoutMs: 10_000 }), 'left is there');
  assert.deepEqual([ran[0], ran.slice(1, 3).sort(), ran[3]], ['start', ['left', 'right'], 'finish']);
  await waitUntil('nothing of the chain is left', async () => {
    return (await keysLeft()).every((key) =>
      /:(queues|ended|results|sessions|active:\S+|lanes:\S+)$/.test(key),
    );
  });
});

test('a chain whose jobs are on different nodes of a cluster runs to its end', async () => {
  begin();
  const cluster = await startCluster({ masters: 3, replicasPer: 0 });
  const queues = ['orders', 'prints'].map((name) => {
    return new Queue(name, { redis: cluster.url, prefix, partitions: 4 });
  }) as [Queue, Queue];
  try {
    for (const queue of queues) queue.work((job) => job.data);
    const died = createChain(diamond(...queues), { id: 'half' }, () => assert.fail('died'));
    await assert.rejects(died, (error) => isSluiceError(error, 'CHAIN_UNKNOWN'));
    await createChain(diamond(...queues), { id: 'whole' });
    assert.equal(await queues[0].result('whole/finish', { timeoutMs: 15_000 }), 'finish');
    await sweepNow(...queues);
    assert.equal(await queues[0].result('half/finish', { timeoutMs: 15_000 }), 'finish');
  } finally {
    await Promise.all(queues.map((queue) => queue.close()));
    await cluster.stop();
  }
});

test('a blocked job says whom it waits for, and starts when the last of them has ended', async () => {
  begin();
  const queue = open('jobs', { partitions: 2 });
  await createChain(diamond(queue, queue), { id: 'c' });
  await end(queue, 'c/start', 'done');
  await deliverAll(queue);
  await end(queue, 'c/left', 'done');
  await deliverAll(queue);
  const view = await queue.job('c/finish');
  assert.equal(view?.state, 'blocked');
  assert.deepEqual(view?.waitsFor, [{ queue: 'jobs', id: 'c/right' }]);
  await end(queue, 'c/right', 'done');
  await deliverAll(queue);
  assert.equal(await stateOf(queue, 'c/finish'), 'waiting');
  assert.deepEqual((await queue.counts()).blocked, 0);
});

for (const [policy, outcome, expected] of [
  ['cancel', 'done', 'waiting'],
  ['cancel', 'dead', 'cancelled'],
  ['cancel', 'cancelled', 'cancelled'],
  ['run', 'done', 'waiting'],
  ['run', 'dead', 'waiting'],
  ['run', 'cancelled', 'waiting'],
  ['wait', 'done', 'waiting'],
  ['wait', 'dead', 'blocked'],
  ['wait', 'cancelled', 'cancelled'],
] as [FailurePolicy, 'done' | 'dead' | 'cancelled', string][]) {
  test(`with the policy ${policy}, a dependency that is ${outcome} leaves its dependent ${expected}`, async () => {
    begin();
    const queue = open('jobs');
    const early = await queue.add('early', { id: 'early' });
    const waiter = { id: 'waiter', after: [early], onDependencyFailure: policy };
    await queue.add('waiter', waiter);
    if (outcome === 'cancelled') await queue.cancel('early');
    else await end(queue, 'early', outcome);
    await deliverAll(queue);
    assert.equal(await stateOf(queue, 'waiter'), expected);
    // Whoever begins to wait after the end meets the same.
    await queue.add('late', { id: 'late', after: [early], onDependencyFailure: policy });
    assert.equal(await stateOf(queue, 'late'), expected);
  });
}

test('with the policy wait, a dependency that died and is replayed releases its dependent', async () => {
  begin();
  const queue = open('jobs');
  const worker = queue.work((job) => {
    if (job.data === 'first' && job.crashes === 0 && runs++ === 0) throw new GiveUp('not yet');
    return job.data;
  });
  let runs = 0;
  const first = await queue.add('first', { id: 'first' });
  await queue.add('second', { id: 'second', after: [first], onDependencyFailure: 'wait' });
  await waitUntil('the first has died', async () => (await stateOf(queue, 'first')) === 'dead');
  assert.equal(await stateOf(queue, 'second'), 'blocked');
  await queue.dead.replay({ ids: ['first'] });
  assert.equal(await queue.result('second', { timeoutMs: 10_000 }), 'second');
  await worker.stop();
});

test('a cancelled job cancels what waits for it, also through a queue that has no workers', async () => {
  begin();
  const [a, b, c] = [open('a'), open('b', { partitions: 2 }), open('c')];
  await createChain(
    [
      { key: '1', queue: a, data: 1 },
      { key: '2', queue: b, data: 2, after: ['1'] },
      { key: '3', queue: c, data: 3, after: ['2'] },
      { key: '4', queue: c, data: 4, after: ['3'], onDependencyFailure: 'run' },
    ],
    { id: 'x' },
  );
  await a.cancel('x/1');
  await deliverAll(a);
  assert.deepEqual(
    [await stateOf(b, 'x/2'), await stateOf(c, 'x/3'), await stateOf(c, 'x/4')],
    ['cancelled', 'cancelled', 'waiting'],
  );
});

test('a notice that is delivered twice, or comes from a stranger, changes nothing', async () => {
  begin();
  const queue = open('jobs');
  const [a, b, stranger] = await queue.addMany([
    { data: 1, id: 'a' },
    { data: 2, id: 'b' },
    { data: 3, id: 'stranger' },
  ]);
  await queue.add('x', { id: 'x', after: [a!, b!] });
  const partition = queue.partitions[0]!;
  const repeat = async (id: string) => {
    await end(queue, id, 'done');
    const notices = await noticesIn(partition);
    assert.equal(notices.length, 1);
    for (let times = 0; times < 3; times++) {
      await deliverAll(queue);
      assert.deepEqual(await noticesIn(partition), []);
      await partition.link.call('RPUSH', [partition.keys.chained, ...notices]);
    }
    await deliverAll(queue);
  };
  await repeat('a');
  assert.deepEqual((await queue.job('x'))?.waitsFor, [{ queue: 'jobs', id: 'b' }]);
  const lie = JSON.stringify({ target: 'jobs:0/x', id: stranger!.id, outcome: 'dead' });
  await partition.link.call('RPUSH', [partition.keys.chained, lie]);
  await deliverAll(queue);
  assert.equal(await stateOf(queue, 'x'), 'blocked');
  await repeat('b');
  assert.equal(await stateOf(queue, 'x'), 'waiting');
  await end(queue, 'x', 'done');
  await deliverAll(queue);
  assert.equal(await stateOf(queue, 'x'), 'done');
});

test('a notice whose delivery fails stays until it succeeds', async () => {
  begin();
  const queue = open('jobs');
  const other = open('other');
  await other.ready();
  const dependency = await queue.add(1, { id: 'a' });
  await other.add(2, { id: 'x', after: [dependency] });
  await end(queue, 'a', 'done');
  const [, place] = [queue.partitions[0]!, other.partitions[0]!];
  await place.link.call('RENAME', [place.keys.blocked, `${place.keys.blocked}-away`]);
  await place.link.call('SET', [place.keys.blocked, 'of the wrong type']);
  await assert.rejects(deliverAll(queue), /WRONGTYPE/);
  assert.equal((await noticesIn(queue.partitions[0]!)).length, 1);
  await place.link.call('RENAME', [`${place.keys.blocked}-away`, place.keys.blocked]);
  await deliverAll(queue);
  assert.equal(await stateOf(other, 'x'), 'waiting');
});

/** Runs `make` again and again, each time dying one step later, until it gets through. Returns the steps it died after. */
async function dieAfterEachStep(
  make: (round: string, step: (name: string) => void) => Promise<unknown>,
  check: (round: string) => Promise<void>,
) {
  const diedAfter: string[] = [];
  for (let allowed = 0; ; allowed++) {
    const round = `r${allowed}`;
    let steps = 0;
    const step = (name: string) => {
      if (steps++ < allowed) return;
      diedAfter.push(name);
      throw new Error(`died after ${name}`);
    };
    try {
      await make(round, step);
    } catch (error) {
      assert.ok(isSluiceError(error, 'CHAIN_UNKNOWN'), String(error));
      await check(round);
      continue;
    }
    await check(round);
    return diedAfter;
  }
}

test('a chain whose maker dies after any step is completed by the sweep, and every job runs once', async () => {
  begin();
  const orders = open('orders');
  const prints = open('prints', { partitions: 3 });
  const ran: string[] = [];
  orders.work((job) => void ran.push(job.id));
  prints.work((job) => void ran.push(job.id));
  const diedAfter = await dieAfterEachStep(
    (round, step) => createChain(diamond(orders, prints), { id: round }, step),
    async (round) => {
      await sweepNow(orders, prints);
      await orders.result(`${round}/finish`, { timeoutMs: 10_000 });
      await sweepNow(orders, prints);
    },
  );
  assert.deepEqual([...new Set(diedAfter)], ['kept', 'added', 'wiring', 'wired', 'dropped']);
  const expected = Array.from({ length: diedAfter.length + 1 }, (_, i) =>
    ['start', 'left', 'right', 'finish'].map((key) => `r${i}/${key}`),
  );
  assert.deepEqual(ran.toSorted(), expected.flat().toSorted());
  await waitUntil('nothing of the chains is left', async () => {
    return (await keysLeft()).every((key) =>
      /:(queues|ended|results|sessions|active:\S+|lanes:\S+)$/.test(key),
    );
  });
});

test('a chain whose first jobs ended before the sweep came is completed too', async () => {
  begin();
  const queue = open('jobs', { partitions: 2 });
  await dieAfterEachStep(
    (round, step) => createChain(diamond(queue, queue), { id: round }, step),
    async (round) => {
      if ((await stateOf(queue, `${round}/start`)) === 'waiting') await end(queue, `${round}/start`, 'done');
      await deliverAll(queue);
      await sweepNow(queue);
      await deliverAll(queue);
      if ((await stateOf(queue, `${round}/start`)) === 'waiting') await end(queue, `${round}/start`, 'done');
      for (const key of ['left', 'right', 'finish']) {
        await deliverAll(queue);
        await end(queue, `${round}/${key}`, 'done');
      }
      assert.equal(await stateOf(queue, `${round}/finish`), 'done');
    },
  );
});

test('one job that waits for others is completed like a chain when its maker dies', async () => {
  begin();
  const queue = open('jobs', { partitions: 2 });
  const other = open('other', { partitions: 3 });
  await dieAfterEachStep(
    async (round, step) => {
      const first = await queue.add(1, { id: `${round}-a` });
      const second = await other.add(2);
      secondId = second.id;
      await dependOn(queue, await queue.prepare(3, { id: `${round}-x` }), [first, second], 'cancel', step);
    },
    async (round) => {
      await end(other, secondId, 'done');
      await sweepNow(queue);
      await deliverAll(queue, other);
      assert.equal(await stateOf(queue, `${round}-x`), 'blocked');
      await end(queue, `${round}-a`, 'done');
      await deliverAll(queue, other);
      assert.equal(await stateOf(queue, `${round}-x`), 'waiting');
      await sweepNow(queue);
      assert.equal(await stateOf(queue, `${round}-x`), 'waiting');
    },
  );
  assert.equal((await queue.counts()).blocked, 0);
});
let secondId = '';

test('a half-made chain that nobody completed for half an hour is cancelled', async () => {
  begin();
  const queue = open('jobs');
  const steps: string[] = [];
  const dying = createChain(diamond(queue, queue), { id: 'old' }, (step) => {
    steps.push(step);
    if (steps.length === 2) throw new Error('died');
  });
  await assert.rejects(dying, (error) => isSluiceError(error, 'CHAIN_UNKNOWN'));
  const { link, keys } = queue.partitions[0]!;
  const kept = String(await link.call('HGET', [keys.chains, 'chain:old']));
  const [since, spec] = [Number.parseInt(kept, 10), kept.slice(kept.indexOf(' '))];
  await link.call('HSET', [keys.chains, 'chain:old', `${since - 31 * 60_000}${spec}`]);
  await sweepNow(queue);
  await deliverAll(queue);
  assert.equal(await stateOf(queue, 'old/start'), undefined);
  assert.equal(await stateOf(queue, 'old/left'), 'cancelled');
  assert.equal(await stateOf(queue, 'old/finish'), 'cancelled');
  assert.equal(await link.call('HLEN', [keys.chains]), 0);
  assert.equal(await link.call('ZCARD', [keys.chainsDue]), 0);
});

test('a specification that nobody can read is given up after an hour, and said so', async () => {
  begin();
  const logged: string[] = [];
  const log = (_fields: object, message: string) => void logged.push(message);
  const queue = open('jobs', { logger: { debug: log, info: log, warn: log, error: log } });
  await queue.ready();
  const { link, keys, clock } = queue.partitions[0]!;
  await link.call('HSET', [keys.chains, 'chain:new', `${Math.round(clock.nowMs())} {`]);
  await link.call('HSET', [keys.chains, 'chain:old', '1 {']);
  await sweepNow(queue);
  assert.deepEqual(((await link.call('HKEYS', [keys.chains])) as Buffer[]).map(String), ['chain:new']);
  assert.equal(logged.filter((message) => message.includes('neither completed nor cancelled')).length, 2);
});

test('a chain that is made again under its id changes nothing', async () => {
  begin();
  const queue = open('jobs', { partitions: 2 });
  const first = await createChain(diamond(queue, queue), { id: 'same' });
  assert.ok(Object.values(first.jobs).every((job) => !job.duplicate));
  await end(queue, 'same/start', 'done');
  const again = await createChain(diamond(queue, queue), { id: 'same' });
  assert.ok(Object.values(again.jobs).every((job) => job.duplicate));
  await deliverAll(queue);
  assert.equal(await stateOf(queue, 'same/start'), 'done');
  assert.equal(await stateOf(queue, 'same/left'), 'waiting');
  assert.equal(await stateOf(queue, 'same/finish'), 'blocked');
  assert.equal((await queue.counts()).waiting, 2);
});

test('a chain that makes no sense is refused, and nothing changes', async () => {
  begin();
  const queue = open('jobs');
  const foreign = open('foreign', { prefix: 'elsewhere' });
  await queue.ready();
  const known = await keysLeft();
  const node = (key: string, after: string[], more: object = {}) => ({
    key,
    queue,
    data: key,
    after,
    ...more,
  });
  const refused: [RegExp, ChainNode<unknown>[]][] = [
    [/no jobs/, []],
    [
      /"a", "b", "c" wait for each other/,
      [node('a', ['c']), node('b', ['a']), node('c', ['b']), node('d', [])],
    ],
    [/"a" wait for each other/, [node('a', ['a'])]],
    [/waits for "nobody"/, [node('a', ['nobody'])]],
    [/key "a" stands for two/, [node('a', []), node('a', [])]],
    [/stands for two/, [node('a', [], { options: { id: 'x' } }), node('b', [], { options: { id: 'x' } })]],
    [/slash/, [node('a/b', [])]],
    [/another Redis or prefix/, [node('a', []), { key: 'b', queue: foreign, data: 1 }]],
    [/for a time/, [node('a', []), node('b', ['a'], { options: { delayMs: 5 } })]],
    [/unique/, [node('a', [], { options: { unique: 'u' } })]],
    [/the limit is 1000/, Array.from({ length: 1_001 }, (_, i) => node(`n${i}`, []))],
  ];
  for (const [reason, nodes] of refused) {
    await assert.rejects(createChain(nodes), (error) => {
      return isSluiceError(error, 'CHAIN_INVALID') && reason.test(error.message);
    });
  }
  const wrongPolicy = [node('a', [], { onDependencyFailure: 'hope' })];
  await assert.rejects(createChain(wrongPolicy), (error) => isSluiceError(error, 'OPTION_INVALID'));
  await assert.rejects(queue.add(1, { id: 'x', after: [{ queue: 'jobs', id: 'x' }] }), /waits for itself/);
  assert.deepEqual(await keysLeft(), known);
});

test('a dependency that nobody knows is refused, and the job is not added', async () => {
  begin();
  const queue = open('jobs');
  open('other');
  for (const ref of [
    { queue: 'jobs', id: 'never' },
    { queue: 'no-such-queue', id: 'never' },
  ]) {
    await assert.rejects(queue.add(1, { id: 'x', after: [ref] }), (error) => {
      return isSluiceError(error, 'UNKNOWN_DEPENDENCY');
    });
  }
  assert.equal(await queue.job('x'), null);
});

test('a dependency is found where its group or its unique key has put it', async () => {
  begin();
  const queue = open('jobs', { partitions: 4 });
  const other = open('other');
  const grouped = await queue.addMany(
    Array.from({ length: 8 }, (_, i) => ({ data: i, id: `j${i}`, group: `g${i}` })),
  );
  await other.add('x', { id: 'x', after: grouped });
  assert.equal((await other.job('x'))?.waitsFor.length, 8);
  for (const { id } of grouped) {
    await queue.cancel(id);
    await deliverAll(queue);
  }
  assert.equal(await stateOf(other, 'x'), 'cancelled');
});

test('a plain job that ends while somebody begins to wait for it is not forgotten', async () => {
  begin();
  const queue = open('jobs');
  const plain = await queue.add('plain');
  const waiter = await queue.prepare('waiter');
  await dependOn(queue, waiter, [plain], 'cancel', async (step) => {
    if (step !== 'kept') return;
    await end(queue, plain.id, 'done');
    // The notice comes before the one it is for exists.
    await deliverAll(queue);
    assert.deepEqual(await noticesIn(queue.partitions[0]!), []);
  });
  assert.equal(await stateOf(queue, waiter.id), 'waiting');
});

test('a worker that finishes a plain job tells those who began to wait meanwhile', async () => {
  begin();
  const queue = open('jobs');
  let finish = () => {};
  const finished = new Promise<void>((resolve) => (finish = resolve));
  queue.work((job) => (job.data === 'slow' ? finished : undefined));
  const slow = await queue.add('slow');
  await waitUntil('it runs', async () => (await stateOf(queue, slow.id)) === 'active');
  const next = await queue.add('next', { after: [slow], keepResultMs: 60_000 });
  finish();
  await queue.result(next.id, { timeoutMs: 5_000 });
});

test('options of a job that somebody waits for survive, and its payload too', async () => {
  begin();
  const queue = open('jobs');
  const bytes = Buffer.from([0, 255, 1, 254]);
  await queue.add(bytes, { id: 'a', group: 'ü/"g"', labels: { who: 'ä' }, attempts: 7, rememberMs: 5 });
  await queue.add({ list: [], big: 12345678901234567n.toString() }, { id: 'b', rememberMs: 0 });
  const plain = await queue.add('plain');
  const refs = ['a', 'b', plain.id].map((id) => ({ queue: 'jobs', id }));
  await queue.add('x', { id: 'x', after: refs });
  const [a, b, c] = [await queue.job('a'), await queue.job('b'), await queue.job(plain.id)];
  assert.deepEqual(a?.data, bytes);
  assert.deepEqual([a?.group, a?.labels], ['ü/"g"', { who: 'ä' }]);
  assert.deepEqual(b?.data, { list: [], big: '12345678901234567' });
  assert.equal(c?.data, 'plain');
});

test('a job whose notice was lost asks again', async () => {
  begin();
  const queue = open('jobs');
  const dependency = await queue.add(1, { id: 'a' });
  await queue.add(2, { id: 'x', after: [dependency] });
  await end(queue, 'a', 'done');
  const { link, keys } = queue.partitions[0]!;
  await link.call('DEL', [keys.chained]);
  await deliverAll(queue);
  assert.equal(await stateOf(queue, 'x'), 'blocked');
  await sweepChains(queue, queue.partitions[0]!);
  assert.equal(await stateOf(queue, 'x'), 'waiting');
});

test('a unique key that is taken leaves the new job out, and nobody waits for it', async () => {
  begin();
  const queue = open('jobs');
  const dependency = await queue.add(1, { id: 'a' });
  const holder = await queue.add(2, { unique: 'u' });
  const added = await queue.add(3, { unique: 'u', after: [dependency] });
  assert.deepEqual(added, { queue: 'jobs', id: holder.id, duplicate: true });
  assert.equal((await queue.counts()).blocked, 0);
});

test('more notices than one look takes are all delivered', async () => {
  begin();
  const queue = open('jobs', { partitions: 2 });
  const nodes: ChainNode<unknown>[] = [{ key: 'root', queue, data: 0 }];
  for (let i = 0; i < 250; i++) nodes.push({ key: `leaf${i}`, queue, data: i, after: ['root'] });
  await createChain(nodes, { id: 'tree' });
  assert.equal((await queue.counts()).blocked, 250);
  await end(queue, 'tree/root', 'done');
  await deliverAll(queue);
  assert.equal((await queue.counts()).blocked, 0);
  assert.equal((await queue.counts()).waiting, 250);
});

test('full memory refuses a new chain before there is anything of it', async () => {
  begin();
  const own = await startRedis();
  const queue = new Queue('jobs', { redis: own.url, prefix });
  try {
    await queue.ready();
    await own.command('CONFIG', 'SET', 'maxmemory', '1mb');
    await assert.rejects(createChain(diamond(queue, queue), { id: 'c' }), (error) => {
      return isSluiceError(error, 'QUEUE_FULL');
    });
    assert.equal(await queue.job('c/start'), null);
    const { link, keys } = queue.partitions[0]!;
    assert.equal(await link.call('EXISTS', [keys.chains]), 0);
  } finally {
    await queue.close();
    await own.stop();
  }
});

test('the data of each node must be what its queue takes', async () => {
  begin();
  const pages = new Queue<{ pages: number }>('pages', { redis: redis.url, prefix });
  const names = new Queue<string>('names', { redis: redis.url, prefix });
  opened.push(pages, names);
  const { jobs } = await createChain([
    { key: 'print', queue: pages, data: { pages: 3 } },
    { key: 'sign', queue: names, data: 'Ada', after: ['print'] },
    // @ts-expect-error -- this queue takes strings
    { key: 'wrong', queue: names, data: 7, after: ['sign'] },
  ]);
  assert.deepEqual(Object.keys(jobs), ['print', 'sign', 'wrong']);
});

test('a reference is read back as it was written, whatever the id is', () => {
  for (const id of ['a', 'a/b:c', '7', 'ä"{}']) {
    assert.deepEqual(parseRef(`q.1_x-y:12/${id}`), { queue: 'q.1_x-y', partition: 12, id });
  }
});
