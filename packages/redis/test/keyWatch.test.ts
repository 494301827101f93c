// A watch tells every change under its prefixes, and says when it cannot.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { startCluster, startProxy, startRedis, waitUntil } from '@sluice/testbed';
import { KeyWatch, RedisLink } from '../src/index.js';

function watch(t: TestContext, url: string) {
  const link = new RedisLink(url);
  const heard: (string | undefined)[] = [];
  const states: string[] = [];
  const keyWatch = new KeyWatch(link, {
    prefixes: ['a:', 'b:'],
    onChange: (keys) => heard.push(...(keys ?? [undefined])),
    onState: (state) => states.push(state),
  });
  const close = () => {
    keyWatch.close();
    link.close();
  };
  t.after(close);
  const until = (what: string, condition: () => boolean) => waitUntil(what, condition, { timeoutMs: 20_000 });
  return { link, heard, states, keyWatch, close, until };
}

test('a watch tells changes of keys with its prefixes, expiry and FLUSHALL, and no others', async (t) => {
  const redis = await startRedis({ appendonly: false });
  t.after(() => redis.stop());
  const { link, heard, keyWatch, until } = watch(t, redis.url);
  await until('it watches', () => keyWatch.watching);
  await link.call('SET', ['a:1', 'x']);
  await link.call('SET', ['c:1', 'x']);
  await link.call('SET', ['b:1', 'x', 'PX', 50]);
  await until('the expiry is told', () => heard.filter((key) => key === 'b:1').length >= 2);
  await link.call('DEL', ['a:1']);
  await until('the removal is told', () => heard.filter((key) => key === 'a:1').length === 2);
  assert.ok(!heard.includes('c:1'));
  await link.call('FLUSHALL', []);
  await until('all is told', () => heard.includes(undefined));
});

test('a watch says that it is blind when its connection breaks or hangs, and watches again afterwards', async (t) => {
  const redis = await startRedis({ appendonly: false });
  const proxy = await startProxy(redis.port);
  const { heard, states, keyWatch, close, until } = watch(t, proxy.url);
  await until('it watches', () => keyWatch.watching);
  proxy.cut();
  await until('it watches again', () => states.join() === 'watching,blind,watching');
  proxy.blackHole(true);
  await until('it noticed', () => !keyWatch.watching);
  proxy.heal();
  await until('it watches again', () => keyWatch.watching);
  await redis.command('SET', 'a:1', 'x');
  await until('changes are told', () => heard.includes('a:1'));
  close();
  await proxy.stop();
  await redis.stop();
});

test('on a cluster a watch hears every master, also one that took over', async (t) => {
  const cluster = await startCluster({ masters: 3, replicasPer: 1 });
  t.after(() => cluster.stop());
  const { link, heard, keyWatch, close, until } = watch(t, cluster.url);
  await until('it watches', () => keyWatch.watching);
  const keys = Array.from({ length: 30 }, (_, i) => `a:${i}`);
  for (const key of keys) await link.call('SET', [key, 'x']);
  await until('all are told', () => keys.every((key) => heard.includes(key)));
  await cluster.failOver(await cluster.slotOf('a:1'));
  await until('it watches again', () => keyWatch.watching);
  heard.length = 0;
  await waitUntil(
    'changes at the new master are told',
    async () => {
      await link.call('SET', ['a:1', 'y']);
      return heard.includes('a:1');
    },
    { timeoutMs: 20_000 },
  );
  close();
});

test('a program that closes its watch while it begins can end, whenever that is', async (t) => {
  const redis = await startRedis({ appendonly: false });
  t.after(() => redis.stop());
  const program = `
    import { KeyWatch, RedisLink } from ${JSON.stringify(new URL('../src/index.js', import.meta.url).href)};
    const link = new RedisLink(${JSON.stringify(redis.url)});
    for (let round = 0; round < 100; round++) {
      const watch = new KeyWatch(link, { prefixes: ['a:'], onChange: () => {}, onState: () => {} });
      await new Promise((resolve) => setTimeout(resolve, round / 10));
      watch.close();
    }
    link.close();
  `;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: 'inherit' });
  const impatience = setTimeout(() => child.kill('SIGKILL'), 60_000);
  const [code] = (await once(child, 'exit')) as [number | null];
  clearTimeout(impatience);
  assert.equal(code, 0, 'something kept it alive');
});
