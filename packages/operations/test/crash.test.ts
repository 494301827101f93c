// The process that runs an operation dies: by kill -9 at any moment, or exactly between two steps. Another takes it up and goes on.
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { eventually, useRedis } from './setup.js';

const bed = useRedis();
const leaseMs = 1_000;

async function startProcess(t: TestContext, prefix: string, more: object = {}) {
  const settings = JSON.stringify({ redis: bed.redis.url, prefix, leaseMs, ...more });
  const child = fork(new URL('./workerProcess.js', import.meta.url), [settings]);
  t.after(() => child.kill('SIGKILL'));
  // One that is to die may do so before it can say that it is ready.
  await Promise.race([once(child, 'message'), once(child, 'exit')]);
  return child;
}

test('an operation whose process is killed twice goes on under its name, and counts each letter once', async (t) => {
  const { queue, operations, prefix } = await bed.scene(t, 300);
  // So slowly that it is still at work when it is killed, however late that is noticed.
  const request = { kind: 'dead.replay', queue: 'mail', choice: 'all', perSecond: 40 } as const;
  const id = await operations.start(request);
  const moved = async () => (await operations.get(id))!.progress.moved;
  for (const until of [20, 60]) {
    const child = await startProcess(t, prefix);
    await eventually(async () => (await moved()) >= until);
    const died = once(child, 'exit');
    child.kill('SIGKILL');
    await died;
    assert.equal((await operations.get(id))!.state, 'running');
    // Its last call may have come to Redis behind its death; then there is one batch more of both.
    await eventually(async () => (await queue.counts()).waiting === (await moved()));
  }
  await startProcess(t, prefix);
  await eventually(async () => (await operations.get(id))!.state === 'done');
  assert.deepEqual((await operations.get(id))!.progress, { moved: 300, total: 300 });
  assert.deepEqual([(await queue.counts()).waiting, await queue.dead.count()], [300, 0]);
});

const points = [
  ['operation.begun', 1],
  ['replay.begun', 1],
  ['replay.moved', 1],
  ['replay.moved', 3],
  ['operation.moved', 1],
] as const;

for (const [point, times] of points) {
  test(`a process that dies at ${point}, time ${times}, leaves an operation that the next one completes`, async (t) => {
    const { queue, operations, prefix } = await bed.scene(t, 60);
    const id = await operations.start({ kind: 'dead.discard', queue: 'mail', choice: 'all', perSecond: 200 });
    const child = await startProcess(t, prefix, { point, times });
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    assert.equal(child.signalCode, 'SIGKILL');
    await startProcess(t, prefix);
    await eventually(async () => (await operations.get(id))!.state === 'done');
    assert.deepEqual((await operations.get(id))!.progress, { moved: 60, total: 60 });
    assert.equal(await queue.dead.count(), 0);
  });
}

test('an operation that is cancelled while its process is dead ends when another takes it up', async (t) => {
  const { queue, operations, prefix } = await bed.scene(t, 300);
  const id = await operations.start({ kind: 'dead.replay', queue: 'mail', choice: 'all', perSecond: 50 });
  const child = await startProcess(t, prefix);
  await eventually(async () => (await operations.get(id))!.progress.moved > 10);
  const died = once(child, 'exit');
  child.kill('SIGKILL');
  await died;
  const asked = (await operations.cancel(id))!;
  assert.ok(asked.stopping || asked.state === 'cancelled');
  await startProcess(t, prefix);
  await eventually(async () => (await operations.get(id))!.state === 'cancelled');
  const { moved } = (await operations.get(id))!.progress;
  assert.ok(moved > 10 && moved < 300);
  assert.equal((await queue.counts()).waiting, moved);
});
