/** PostgreSQL for tests: its data over restarts, many databases, freezing, and nothing left behind. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startPostgres, waitUntil } from '../src/index.js';

test('a PostgreSQL keeps its data over kill -9 and restart, and its folder goes with stop', async () => {
  const server = await startPostgres();
  const { port, dir } = server;
  const url = await server.createDatabase();
  await server.query('CREATE TABLE kept (word text)', [], url);
  await server.query('INSERT INTO kept VALUES ($1)', ['value'], url);
  await server.kill9();
  assert.equal(server.running, false);
  await assert.rejects(server.query('SELECT 1'));
  await server.restart();
  assert.equal(server.port, port);
  assert.deepEqual(await server.query('SELECT word FROM kept', [], url), [{ word: 'value' }]);
  const other = await server.createDatabase();
  await assert.rejects(server.query('SELECT word FROM kept', [], other), /does not exist/);
  await server.stop();
  assert.equal(existsSync(dir), false);
});

test('a PostgreSQL killed while it works for many starts again at once', async () => {
  const server = await startPostgres({ fsync: false });
  for (let kills = 0; kills < 3; kills++) {
    const work = `SELECT count(*) FROM generate_series(1, 100000000)`;
    const busy = Promise.allSettled(Array.from({ length: 8 }, () => server.query(work)));
    await waitUntil('they work', async () => {
      const [row] = await server.query(`SELECT count(*)::int AS n FROM pg_stat_activity WHERE query = $1`, [
        work,
      ]);
      return row!['n'] === 8;
    });
    await server.kill9();
    await server.restart();
    await busy;
    assert.deepEqual(await server.query('SELECT 1 AS one'), [{ one: 1 }]);
  }
  await server.stop();
});

test('a paused PostgreSQL is silent until it is resumed', async () => {
  const server = await startPostgres();
  server.pause();
  const answer = server.query('SELECT 1 AS one');
  assert.equal(await Promise.race([answer, sleep(200, 'silence')]), 'silence');
  server.resume();
  assert.deepEqual(await answer, [{ one: 1 }]);
  server.pause();
  await server.stop();
});

test('a PostgreSQL waits for the disk unless it is told not to', async () => {
  const servers = await Promise.all([
    startPostgres(),
    startPostgres({ fsync: false, config: { work_mem: '5MB' } }),
  ]);
  const settings = await Promise.all(servers.map((server) => server.query('SHOW fsync')));
  assert.deepEqual(settings, [[{ fsync: 'on' }], [{ fsync: 'off' }]]);
  assert.deepEqual(await servers[1].query('SHOW work_mem'), [{ work_mem: '5MB' }]);
  await Promise.all(servers.map((server) => server.stop()));
});

test('a test process killed with kill -9 leaves no PostgreSQL and no folder', async () => {
  const child = spawn(process.execPath, [fileURLToPath(new URL('postgresLeaver.js', import.meta.url))], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const { pid, dir } = JSON.parse(line.toString()) as { pid: number; dir: string };
  assert.ok(isAlive(pid));
  child.kill('SIGKILL');
  await waitUntil('server and folder are gone', () => !isAlive(pid) && !existsSync(dir));
});

/** A process that has ended stays in the list until its parent asks; that is no life. */
function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return !stat.slice(stat.lastIndexOf(')')).startsWith(') Z');
  } catch {
    return false;
  }
}
