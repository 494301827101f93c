// Every script of operations may run twice: the connection repeats a call whose answer got lost. Here every one of them does, always, and
// the caller gets the second answer.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { RedisLink, type Script } from '@sluice/redis';
import { scripts } from '../src/scripts.js';
import { eventually, useRedis } from './setup.js';

const bed = useRedis();
const repeated = new Set<Script>(Object.values(scripts));
const ran = new Set<string>();
type Run = (script: Script, ...rest: unknown[]) => Promise<unknown>;

before(() => {
  // Typed by its own class; here any script may come.
  const link = RedisLink.prototype as unknown as { run: Run };
  const { run } = link;
  link.run = async function twice(this: RedisLink, script, ...rest) {
    const answer = await run.call(this, script, ...rest);
    if (!repeated.has(script)) return answer;
    ran.add(script.name);
    return run.call(this, script, ...rest);
  };
});

test('with every answer lost once, operations run, end and are cancelled as they should', async (t) => {
  const { queue, operations } = await bed.scene(t, 100);
  operations.work();
  const first = await operations.start({ kind: 'dead.discard', queue: 'mail', choice: { text: 'disk' } });
  await eventually(async () => (await operations.get(first))?.state === 'done');
  assert.deepEqual((await operations.get(first))!.progress, { moved: 50, total: 50 });
  const slow = { kind: 'dead.replay', queue: 'mail', choice: 'all', perSecond: 10 } as const;
  const second = await operations.start(slow);
  await eventually(async () => (await operations.get(second))!.progress.moved > 0);
  await operations.cancel(second);
  // Cancelling waits for a moment only.
  await eventually(async () => (await operations.get(second))?.state === 'cancelled');
  const stopped = (await operations.get(second))!;
  assert.equal((await queue.counts()).waiting, stopped.progress.moved);
  assert.equal((await operations.list()).items.length, 2);
  assert.deepEqual([...ran].sort(), Object.keys(scripts).sort());
});
