// The two scripts of inspect may run twice, because the connection repeats a call whose answer got lost, and a writer may die between any
// two of its calls. Neither may be seen in the history.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { RedisLink, type Script } from '@sluice/redis';
import { History } from '../src/history.js';
import { inspectKeys } from '../src/keys.js';
import { Roller, redisSeries, seriesOf } from '../src/roller.js';
import type { Snapshot } from '../src/snapshot.js';
import { eventually, useRedis } from './setup.js';

const bed = useRedis();
const minuteMs = 60_000;
const minutes = 70;

/** A link whose scripts run as often as `times` says, before it is used; and that dies when `dies` says so. */
class FaultyLink extends RedisLink {
  calls = 0;
  times = 1;
  diesBefore = Infinity;
  /** Whether the last call before its death reached Redis. */
  reaches = false;

  override async run(script: Script, ...rest: never[]): Promise<unknown> {
    const run: (script: Script, ...rest: never[]) => Promise<unknown> = super.run.bind(this);
    if (++this.calls >= this.diesBefore) {
      if (this.reaches && this.calls === this.diesBefore) await run(script, ...rest);
      throw new Error('the process is dead');
    }
    for (let n = 1; n < this.times; n++) await run(script, ...rest);
    return run(script, ...rest);
  }
}

interface Stage {
  /** Rolls the next minutes with a writer of its own. */
  roll: (link: FaultyLink, prefix: string) => Promise<void>;
  read: (prefix: string) => Promise<unknown>;
  link: () => FaultyLink;
}

async function setUp(t: TestContext): Promise<Stage> {
  const queue = bed.queue<number>(t);
  const inspect = bed.inspect(t, [queue]);
  let ended = 0;
  const worker = queue.work(() => void ended++);
  await queue.addMany(Array.from({ length: 30 }, (_, n) => ({ data: n })));
  await eventually(() => ended === 30);
  await worker.stop();
  const seen = await inspect.snapshot();
  const at = (minute: number): Snapshot => ({ ...seen, atMs: seen.atMs + minute * minuteMs });
  const link = () => {
    const made = new FaultyLink(bed.redis.url);
    t.after(() => made.close());
    return made;
  };
  const last = Math.floor((at(minutes).atMs - 2_000) / minuteMs) - 1;
  const reader = link();
  return {
    link,
    roll: async (through, prefix) => {
      const roller = new Roller(new History(through, inspectKeys(prefix)));
      for (const minute of [2, 30, 60, minutes]) await roller.roll(at(minute), [queue]);
    },
    read: async (prefix) => {
      const history = new History(reader, inspectKeys(prefix));
      const series = seriesOf(queue.name);
      const hours = await history.readHours(series, Math.floor(last / 60) - 2, 3);
      const rolled = await history.rolledUntil();
      assert.deepEqual([...rolled.keys()].sort(), [series, redisSeries].sort());
      return [await history.readMinutes(series, last - minutes, minutes + 1), hours, [...rolled.values()]];
    },
  };
}

test('with every answer lost once, the history is the same', async (t) => {
  const { roll, read, link } = await setUp(t);
  const histories = async () => {
    const [plain, repeated] = [bed.prefix(), bed.prefix()];
    await roll(link(), plain);
    const twice = link();
    twice.times = 2;
    await roll(twice, repeated);
    return [await read(repeated), await read(plain)];
  };
  // A minute that ended meanwhile is in one history and not in the other: then both are written anew.
  let [found, wanted] = await histories();
  if (JSON.stringify(found) !== JSON.stringify(wanted)) [found, wanted] = await histories();
  assert.deepEqual(found, wanted);
});

test('a writer that dies before or behind any of its calls leaves a history that the next one completes', async (t) => {
  const { roll, read, link } = await setUp(t);
  const whole = link();
  const expected = async () => {
    const plain = bed.prefix();
    await roll(link(), plain);
    return read(plain);
  };
  await roll(whole, bed.prefix());
  const steps = new Set([1, 2, 3, 4, 5, 20, whole.calls - 3, whole.calls - 2, whole.calls - 1, whole.calls]);
  const histories = async (step: number, reaches: boolean) => {
    const prefix = bed.prefix();
    const dying = link();
    dying.diesBefore = step;
    dying.reaches = reaches;
    await assert.rejects(roll(dying, prefix), /is dead/);
    // Its lease ends.
    await bed.redis.command('DEL', inspectKeys(prefix).writer);
    await roll(link(), prefix);
    return [await read(prefix), await expected()];
  };
  for (const step of steps) {
    for (const reaches of [false, true]) {
      // A minute that ended meanwhile is in one history and not in the other: then both are written anew.
      let [found, wanted] = await histories(step, reaches);
      if (JSON.stringify(found) !== JSON.stringify(wanted)) [found, wanted] = await histories(step, reaches);
      assert.deepEqual(found, wanted, `call ${step}, ${reaches ? 'after' : 'before'} it`);
    }
  }
});
