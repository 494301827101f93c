// Whose turn it is in claim.lua: priorities, groups, and jobs without a group share the claims, whatever the size of a claim.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import * as fc from 'fast-check';
import { RedisLink } from '@sluice/redis';
import { startRedis } from '@sluice/testbed';
import type { RedisServer } from '@sluice/testbed';
import { Calls, readClaim } from './model/calls.js';
import { flag } from './model/state.js';
import type { ModelJob } from './model/state.js';
import { makeItem, makeJob } from './model/world.js';

const runs = { numRuns: 12 };
const worker = 's';
let redis: RedisServer;
let link: RedisLink;

before(async () => {
  redis = await startRedis({ appendonly: false });
  link = new RedisLink(redis.url);
});

after(async () => {
  link?.close();
  await redis?.stop();
});

/** One worker that ends at once what it claims. */
class Scene {
  readonly #calls = new Calls(link, undefined);
  readonly #jobs = new Map<string, ModelJob>();
  #added = 0;
  #claims = 0;

  static async begin(): Promise<Scene> {
    await link.call('FLUSHALL', []);
    const scene = new Scene();
    await scene.#calls.open(worker);
    return scene;
  }

  async add(priority: number, count: number): Promise<void> {
    const jobs = this.#make(count, (id) => makeJob(`j${id}`, 1, priority));
    await this.#calls.add('p', '0', ++this.#added, jobs);
  }

  async addToGroup(group: string, count: number): Promise<void> {
    const options = JSON.stringify({ g: group });
    const jobs = this.#make(count, (id) =>
      makeJob(`${group}-${id}`, 1, 3, options, flag.settles | flag.grouped),
    );
    await this.#calls.addEach('p', '0', ++this.#added, jobs.map(makeItem));
  }

  async claim(want: number): Promise<ModelJob[]> {
    const call = { session: worker, lane: '#0', seq: ++this.#claims, want, acks: [], idle: true };
    const { token, ids } = readClaim(await this.#calls.claim(call));
    const rest = { keepMs: 0, result: '', tried: '', detail: '', print: '', title: '' };
    const items = ids.map((id) => ({ id, token, outcome: 'done' as const, ...rest }));
    await this.#calls.settle(worker, items);
    return ids.map((id) => this.#jobs.get(id)!);
  }

  /** Claims of these sizes, one after another. */
  async claimAll(wants: number[]): Promise<ModelJob[]> {
    const claimed: ModelJob[] = [];
    for (const want of wants) claimed.push(...(await this.claim(want)));
    return claimed;
  }

  #make(count: number, make: (id: number) => ModelJob): ModelJob[] {
    const jobs = Array.from({ length: count }, (_, i) => make(this.#jobs.size + i));
    for (const job of jobs) this.#jobs.set(job.id, job);
    return jobs;
  }
}

const groupOf = ({ id }: ModelJob) => (id.includes('-') ? id.slice(0, id.indexOf('-')) : undefined);

const size = fc.integer({ min: 1, max: 9 });
/** Sizes of claims, of this many jobs in all: all alike, which is what workers do, or mixed. */
const wants = (sum: number) =>
  fc
    .oneof(
      size.map((want) => [want]),
      fc.array(size, { minLength: 2, maxLength: 5 }),
    )
    .map((sizes) => {
      const list: number[] = [];
      for (let left = sum; left > 0; left -= list.at(-1)!)
        list.push(Math.min(sizes[list.length % sizes.length]!, left));
      return list;
    });

test('every priority that waits gets at least 1/16 of the claims of jobs without a group', async () => {
  const total = 160;
  const levels = fc.uniqueArray(fc.nat(5), { minLength: 2, maxLength: 6 });
  const property = fc.asyncProperty(levels, wants(total), fc.boolean(), async (levels, wants, grouped) => {
    const scene = await Scene.begin();
    // The most urgent one has enough for everybody.
    for (const level of levels) await scene.add(level, level === Math.min(...levels) ? total : 24);
    if (grouped) for (const name of ['a', 'b', 'c']) await scene.addToGroup(name, total / 2);
    const claimed = (await scene.claimAll(wants)).filter((job) => groupOf(job) === undefined);
    for (const level of levels) {
      const got = claimed.filter(({ priority }) => priority === level).length;
      assert.ok(got >= Math.floor(claimed.length / 16), `priority ${level} got ${got} of ${claimed.length}`);
    }
  });
  await fc.assert(property, runs);
});

test('jobs with a group and jobs without one get the same number of claims while both wait', async () => {
  const total = 96;
  const property = fc.asyncProperty(wants(total), fc.nat(5), async (wants, level) => {
    const scene = await Scene.begin();
    await scene.add(level, total);
    for (const name of ['a', 'b', 'c']) await scene.addToGroup(name, total);
    const claimed = await scene.claimAll(wants);
    const inGroups = claimed.filter((job) => groupOf(job) !== undefined).length;
    assert.ok(Math.abs(2 * inGroups - claimed.length) <= 2, `${inGroups} of ${claimed.length} have a group`);
  });
  await fc.assert(property, runs);
});

test('groups with a backlog are served in turn', async () => {
  const property = fc.asyncProperty(wants(60), fc.integer({ min: 2, max: 8 }), async (wants, groups) => {
    const scene = await Scene.begin();
    for (let i = 0; i < groups; i++) await scene.addToGroup(`g${i}`, 60);
    // At first those that were served already alternate with those that were not.
    await scene.claim(2 * groups);
    const claimed = await scene.claimAll(wants);
    const counts = Array.from(
      { length: groups },
      (_, i) => claimed.filter((job) => groupOf(job) === `g${i}`).length,
    );
    assert.ok(Math.max(...counts) - Math.min(...counts) <= 1, `the groups got ${counts.join()}`);
  });
  await fc.assert(property, runs);
});

test("a group's single job starts within two claims, whatever the backlog of others", async () => {
  const property = fc.asyncProperty(wants(30), size, async (wants, size) => {
    const scene = await Scene.begin();
    for (let i = 0; i < 12; i++) await scene.addToGroup(`g${i}`, 60);
    await scene.claimAll(wants);
    await scene.addToGroup('late', 1);
    const claimed = await scene.claimAll([size, size]);
    assert.ok(claimed.some((job) => groupOf(job) === 'late'));
  });
  await fc.assert(property, runs);
});

test('a stream of new groups does not starve those that have waited', async () => {
  const property = fc.asyncProperty(fc.integer({ min: 1, max: 4 }), async (want) => {
    const scene = await Scene.begin();
    await scene.addToGroup('old', 60);
    await scene.claim(1);
    const claimed: ModelJob[] = [];
    for (let i = 0; i < 24; i++) {
      for (let k = 0; k < want; k++) await scene.addToGroup(`new${i}x${k}`, 1);
      claimed.push(...(await scene.claim(want)));
    }
    const old = claimed.filter((job) => groupOf(job) === 'old').length;
    assert.ok(old >= Math.floor(claimed.length / 2) - 1, `the old group got ${old} of ${claimed.length}`);
  });
  await fc.assert(property, runs);
});
