// Ten thousand random schedules on a real Redis, and no reader sees what was invalidated before it asked (model/schedule.ts). The seed is
// new each time; what a failure prints repeats it with model/main.ts, which also runs as many more as one likes.
//
// That the model can see is shown by breaking what it watches over: each sabotage must be noticed.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startRedis, type RedisServer } from '@sluice/testbed';
import { sabotages } from './model/sabotage.js';
import type { Violation } from './model/schedule.js';

const program = fileURLToPath(new URL('model/main.js', import.meta.url));
const schedules = 10_000;
const programs = 2;
/** A sabotage is noticed after some hundred schedules. */
const sabotagedSchedules = 5_000;
const limitMs = 540_000;
/** Schedules make much that soon goes; with more room for it a fifth of the time is saved that goes into collecting it. */
const roomForYoung = '--max-semi-space-size=64';
const firstSeed = Math.floor(Math.random() * 2 ** 30);

let redis: RedisServer;
before(async () => {
  redis = await startRedis({ appendonly: false });
});
after(() => redis.stop());

async function run(seed: number, count: number, sabotage = ''): Promise<Violation | undefined> {
  const args = ['--redis', redis.url, '--seed', `${seed}`, '--schedules', `${count}`, '--sabotage', sabotage];
  const command = [roomForYoung, program, ...args];
  const { stdout } = await promisify(execFile)(process.execPath, command, { timeout: limitMs });
  return stdout === '' ? undefined : (JSON.parse(stdout) as Violation);
}

test('there is no stale read in 10,000 random schedules with dying loaders and lost replies', async (t) => {
  t.diagnostic(`seeds from ${firstSeed}`);
  const share = schedules / programs;
  const runs = Array.from({ length: programs }, (_, i) => run(firstSeed + i * share, share));
  for (const violation of await Promise.all(runs)) {
    assert.equal(
      violation && `seed ${violation.seed}: ${violation.said}\n${violation.steps.join('\n')}`,
      undefined,
    );
  }
});

for (const sabotage of Object.keys(sabotages)) {
  test(`the model notices a sabotage: ${sabotage}`, async () => {
    assert.notEqual(await run(1, sabotagedSchedules, sabotage), undefined);
  });
}
