/** Operating a real server from the command line: queues, jobs, dead letters, workers, schedules, cache, events, and what they print. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Queue } from '@sluice/queue';
import { makeOwnedFolder, waitUntil } from '@sluice/testbed';
import { jsonLines, type Ran, type RunOptions } from './commandLine.js';
import { startServer, type RunningServer } from './runningServer.js';

/** Jobs do what their data say. */
const HANDLERS = `
const act = async (job) => {
  if (job.data?.die) throw new Error(job.data.die);
  await job.log('working on it');
  return { done: true };
};
export const handlers = { mail: act, images: act, slow: act };
`;
const PATIENCE_MS = 60_000;
const EVIL = 'bad\x1b]0;owned\x07\x1b[31m\u202e';
let server: RunningServer;

before(async () => {
  const file = join(makeOwnedFolder('handlers'), 'handlers.mjs');
  await writeFile(file, HANDLERS);
  server = await startServer({ SLUICE_HANDLERS: file });
});
after(() => server.stop());

async function ok(...args: string[]): Promise<Ran> {
  const ran = await server.run(args);
  assert.equal(ran.code, 0, `sluice ${args.join(' ')}: ${ran.stderr}`);
  assert.doesNotMatch(ran.stdout, /(?![\n\t])[\p{Cc}\p{Bidi_Control}]/u, 'nothing acts on a terminal');
  return ran;
}

async function addDead(queue: string, ...reasons: string[]): Promise<string[]> {
  const ids: string[] = [];
  for (const die of reasons) {
    const { stdout } = await ok(
      'jobs',
      'add',
      queue,
      JSON.stringify({ die, card: 'ada' }),
      '--attempts',
      '1',
    );
    ids.push(stdout.trim());
  }
  const stateOf = async (id: string): Promise<unknown> =>
    (JSON.parse((await ok('jobs', 'show', queue, id, '--json')).stdout) as { state: string }).state;
  await waitUntil(
    'they are dead',
    async () => (await Promise.all(ids.map(stateOf))).every((state) => state === 'dead'),
    {
      timeoutMs: PATIENCE_MS,
    },
  );
  return ids;
}

test('queues are listed, paused, resumed and limited', async () => {
  assert.match((await ok('queues', 'ls')).stdout, /^QUEUE +STATE +WAITING/);
  const isListed = async (): Promise<boolean> => /^mail +running /m.test((await ok('queues', 'ls')).stdout);
  await waitUntil('the workers have opened them', isListed, { timeoutMs: PATIENCE_MS });
  assert.equal((await ok('queues', 'pause', 'mail', '--dry-run')).stdout, 'mail: would be paused\n');
  await ok('queues', 'pause', 'mail', 'images');
  const paused = async (): Promise<unknown> => {
    const rows = jsonLines<{ name: string; paused: boolean }>(await ok('queues', 'ls', '--json'));
    return rows.find(({ name }) => name === 'mail')?.paused;
  };
  await waitUntil('the list says so', async () => (await paused()) === true, { timeoutMs: PATIENCE_MS });
  await ok('queues', 'resume', 'mail', 'images');
  await ok('queues', 'limit', 'mail', '--max-active', '7', '--rate', '1000/1m', '--group-max-active', '2');
  assert.match(
    (await ok('queues', 'show', 'mail')).stdout,
    /limits +7 at once, 1,000 starts per 1 min, 2 at once per group/,
  );
  await ok('queues', 'limit', 'mail', '--max-active', 'none', '--rate', 'none', '--group-max-active', 'none');
  assert.match((await ok('queues', 'show', 'mail')).stdout, /limits +none/);
  assert.equal((await server.run(['queues', 'limit', 'mail'])).code, 2);
  assert.equal((await server.run(['queues', 'show', 'nothere'])).code, 3);
});

test('a job is added, found by its data, shown, and cancelled', async () => {
  const { stdout } = await ok(
    'jobs',
    'add',
    'mail',
    '{"to":"ada","n":17}',
    '--delay',
    '1h',
    '--priority',
    '1',
    '--group',
    'g',
  );
  const id = stdout.trim();
  const found = jsonLines<{ id: string; state: string }>(
    await ok('jobs', 'ls', 'mail', '--field', 'n=17', '--json'),
  );
  assert.deepEqual(
    found.map((job) => [job.id, job.state]),
    [[id, 'delayed']],
  );
  const shown = (await ok('jobs', 'show', id)).stdout;
  assert.match(shown, /queue +mail\n.*state +delayed/s);
  assert.match(shown, /"to": "ada"/);
  assert.match(shown, /due .*in (59 min|1 h)/);
  assert.equal((await server.run(['jobs', 'cancel', 'mail', id])).code, 2, 'nobody to ask');
  assert.match((await ok('jobs', 'cancel', 'mail', id, '--dry-run')).stdout, /would be cancelled/);
  await ok('jobs', 'cancel', 'mail', id, '--yes');
  assert.equal((await server.run(['jobs', 'cancel', 'mail', 'nothing-like-this', '--yes'])).code, 3);
});

test('a job from stdin runs at once with retry, and what cannot be retried is the code 6', async () => {
  const added = await server.run(
    ['jobs', 'add', 'images', '-', '--delay', '1h', '--id', 'img-1', '--keep-result', '1h'],
    { input: '{"file":"a.png"}' },
  );
  assert.equal(added.stdout, 'img-1\n');
  await ok('jobs', 'retry', 'images', 'img-1');
  await waitUntil(
    'it is done',
    async () => /state +done/.test((await ok('jobs', 'show', 'images', 'img-1')).stdout),
    { timeoutMs: PATIENCE_MS },
  );
  assert.equal((await server.run(['jobs', 'retry', 'images', 'img-1'])).code, 6);
  assert.equal((await server.run(['jobs', 'add', 'images', '{oops'])).code, 2);
});

test('dead letters are grouped, read, edited, replayed and exported', async () => {
  const [first] = await addDead('mail', 'the bank does not answer', 'the bank does not answer', EVIL);
  assert.match((await ok('dead', 'groups', 'mail')).stdout, /^ +2 +mail .*the bank does not answer/m);
  const [group] = jsonLines<{ fingerprint: string; count: number }>(await ok('dead', 'groups', '--json'));
  assert.equal(group!.count, 2);
  assert.match(
    (await ok('dead', 'ls', 'mail')).stdout,
    /bad\\x1b\]0;owned/,
    'what a stranger wrote is written out',
  );
  assert.match(
    (await ok('dead', 'show', 'mail', first!)).stdout,
    /Error: the bank does not answer\n +at act/,
  );
  assert.match(
    (await ok('jobs', 'ls', 'mail', '--state', 'dead', '--error', 'bank')).stdout,
    /the bank does not answer/,
  );
  const exported = jsonLines<{ id: string }>(await ok('dead', 'export', 'mail'));
  assert.equal(exported.length, 3);
  const plan = await ok('dead', 'replay', 'mail', '--fingerprint', group!.fingerprint, '--dry-run');
  assert.match(plan.stdout, /^2 dead letters of mail would run again/);
  assert.equal((await server.run(['dead', 'replay', 'mail', '--yes'])).code, 2, 'which letters?');
  await ok('dead', 'edit', 'mail', first!, '{"card":"eve"}', '--replay');
  await waitUntil(
    'it is not dead any more',
    async () => (await server.run(['dead', 'show', 'mail', first!])).code === 3,
    { timeoutMs: PATIENCE_MS },
  );
});

/** An editor that does `work` with the file it is given, which is `$1`. It touches that file or nothing, whatever else it were given. */
async function editorOf(work: string): Promise<string> {
  const file = join(makeOwnedFolder('editor'), 'edit.sh');
  const isOurs = `case "$#$1" in 1*/sluice-edit-*/data.json) ;; *) echo "not ours: $*" >&2; exit 9 ;; esac`;
  await writeFile(file, `#!/bin/sh\n${isOurs}\n${work}\n`);
  await chmod(file, 0o755);
  return file;
}

test('a dead letter is edited in an editor, in a file that nobody else can read', async () => {
  const [id] = await addDead('mail', 'wrong address');
  const edit = (editor: string, ...more: string[]): Promise<Ran> =>
    server.run(['dead', 'edit', 'mail', id!, ...more], { env: { EDITOR: editor }, isTerminal: true });
  const dataNow = async (): Promise<unknown> =>
    (JSON.parse((await ok('dead', 'show', 'mail', id!, '--json')).stdout) as { data: unknown }).data;
  const before = await dataNow();
  const seen = join(server.folder, 'seen.txt');
  const changing = await editorOf(`{ stat -c %a "$1"; cat "$1"; } > "${seen}"; sed -i 's/ada/eve/' "$1"`);
  assert.equal((await edit(changing, '--dry-run')).code, 0);
  assert.deepEqual(await dataNow(), before, 'a dry run changes nothing');
  const edited = await edit(`env LANG=C ${changing}`);
  assert.equal(edited.code, 0, edited.stderr);
  assert.match(edited.stderr, /changed/);
  assert.deepEqual(await dataNow(), { die: 'wrong address', card: 'eve' });
  assert.match(
    await readFile(seen, 'utf8'),
    /^600\n\{\n {2}"die": "wrong address",\n {2}"card": "ada"\n\}\n$/,
  );
  assert.match((await edit('true')).stderr, /as they were/);
  assert.equal((await edit('false')).code, 2, 'an editor that failed changes nothing');
  assert.equal((await edit(await editorOf('echo {oops > "$1"'))).code, 2);
  const cli = `fetch(process.argv[1], { method: 'PATCH', headers: { 'Content-Type': 'application/json' }, body: process.argv[2] })`;
  const path = `${server.url}/v1/queues/mail/dead/${id}`;
  const slow = await editorOf(
    `"${process.execPath}" -e "${cli}" "${path}" '{"data":{"card":"somebody else"}}'; echo '{"card":"mine"}' > "$1"`,
  );
  const late = await edit(slow);
  assert.equal(late.code, 6, 'somebody changed it while the editor was open');
  assert.deepEqual(await dataNow(), { card: 'somebody else' });
  assert.equal((await server.run(['dead', 'edit', 'mail', id!])).code, 2, 'no terminal for an editor');
});

test('a job that died runs again with other data, and one that is done as a copy', async () => {
  const [id] = await addDead('images', 'no such file');
  assert.match((await ok('jobs', 'replay', 'images', id!, '--dry-run')).stdout, /is dead, would run again/);
  await ok('jobs', 'replay', 'images', id!, '{"file":"b.png"}');
  const gone = async (): Promise<boolean> => (await server.run(['dead', 'show', 'images', id!])).code === 3;
  await waitUntil('it is not dead any more', gone, { timeoutMs: PATIENCE_MS });
  await ok('jobs', 'add', 'images', '{"file":"c.png"}', '--id', 'img-2', '--keep-result', '1h');
  const state = async (): Promise<string> => (await ok('jobs', 'show', 'images', 'img-2')).stdout;
  await waitUntil('it is done', async () => /state +done/.test(await state()), { timeoutMs: PATIENCE_MS });
  const [copy] = jsonLines<{ id: string; was: string }>(
    await ok('jobs', 'replay', 'images', 'img-2', '{"file":"d.png"}', '--json'),
  );
  assert.equal(copy!.was, 'done');
  assert.notEqual(copy!.id, 'img-2');
  assert.equal((await server.run(['jobs', 'replay', 'images', 'nothing-like-this'])).code, 3);
});

test('letters are replayed and given up by ids from a pipe, and the command waits for the end', async () => {
  await addDead('images', 'one', 'two', 'three');
  const list = await ok('dead', 'ls', 'images', '--json');
  assert.equal(
    (await server.run(['dead', 'rm', 'images', '-'], { input: list.stdout })).code,
    2,
    'nobody to ask',
  );
  const twoLines = list.stdout.split('\n').slice(0, 2).join('\n');
  const removed = await server.run(['dead', 'rm', 'images', '-', '--yes', '--json'], { input: twoLines });
  assert.equal(removed.code, 0, removed.stderr);
  const [operation] = jsonLines<{ id: string; state: string; progress: { moved: number } }>(removed);
  assert.deepEqual([operation!.state, operation!.progress.moved], ['done', 2]);
  assert.equal(jsonLines(await ok('dead', 'ls', 'images', '--json')).length, 1);
  assert.match((await ok('operations', 'ls')).stdout, /dead\.discard images +done/);
  assert.match((await ok('operations', 'show', operation!.id, '--follow')).stdout, /done/);
  const detached = await ok('dead', 'replay', 'images', '--all', '--yes', '--detach');
  await ok('operations', 'show', detached.stdout.trim(), '--follow');
  assert.equal((await server.run(['operations', 'cancel', 'nothing', '--yes'])).code, 3);
  const late = await ok('operations', 'cancel', operation!.id, '--dry-run');
  assert.match(late.stdout, /has ended already, done, 2 of 2/);
  assert.equal((await server.run(['operations', 'resume', operation!.id])).code, 6, 'it did not fail');
  assert.equal((await server.run(['operations', 'resume', 'nothing'])).code, 3);
  const dryResume = await ok('operations', 'resume', operation!.id, '--dry-run');
  assert.match(dryResume.stdout, /only one that failed goes on/);
});

test('jobs that wait for their next attempt are listed and run now', async () => {
  // For an hour: with the usual seconds it may run just when somebody looks.
  const slow = new Queue('slow', { redis: server.redisUrl });
  const backoff = { type: 'fixed', delayMs: 3_600_000 } as const;
  const { id } = await slow.add({ die: 'not yet' }, { attempts: 10, backoff, labels: { tenant: 'default' } });
  await slow.close();
  const waits = async (): Promise<boolean> => (await ok('retry', 'ls', 'slow')).stdout.includes(id);
  await waitUntil('it waits', waits, { timeoutMs: PATIENCE_MS });
  assert.match((await ok('retry', 'ls')).stdout, /slow .* in (59 min|1 h).*not yet/);
  assert.match((await ok('retry', 'now', 'slow', '--all', '--dry-run')).stdout, /would run now/);
  const isCounted = async (): Promise<boolean> =>
    /^retries +[1-9]\d* waiting, the next /m.test((await ok('status')).stdout);
  await waitUntil('the status counts it', isCounted, { timeoutMs: PATIENCE_MS });
  await ok('retry', 'now', 'slow', id);
});

test('workers are listed and drained, and work again', async () => {
  const [worker] = jsonLines<{ session: string; name: string; host: string; pid: number }>(
    await ok('workers', 'ls', 'slow', '--json'),
  );
  const name = `${worker!.host}:${worker!.pid}`;
  assert.equal((await server.run(['workers', 'drain', 'slow', name])).code, 2);
  assert.match((await ok('workers', 'drain', 'slow', name, '--dry-run')).stdout, /would take nothing more/);
  assert.match((await ok('workers', 'ls', 'slow')).stdout, /working/, 'a dry run drains nobody');
  await ok('workers', 'drain', 'slow', name, '--yes');
  const state = async (): Promise<string> => (await ok('workers', 'ls', 'slow')).stdout;
  await waitUntil('it is drained', async () => /drain/.test(await state()), { timeoutMs: PATIENCE_MS });
  await ok('workers', 'drain', 'slow', name, '--undo');
  await waitUntil('it works again', async () => /working/.test(await state()), { timeoutMs: PATIENCE_MS });
  assert.equal((await server.run(['workers', 'drain', 'slow', 'nobody', '--yes'])).code, 3);
});

test('schedules are set, listed and removed', async () => {
  await ok(
    'schedules',
    'set',
    'mail',
    'digest',
    '{"kind":"digest"}',
    '--cron',
    '0 8 * * 1-5',
    '--timezone',
    'Europe/Berlin',
  );
  await ok('schedules', 'set', 'images', 'sweep', '--every', '15m', '--missed', 'skip');
  const table = (await ok('schedules', 'ls')).stdout;
  assert.match(table, /mail +digest +0 8 \* \* 1-5 \(Europe\/Berlin\)/);
  assert.match(table, /images +sweep +every 15 min .* in \d/);
  assert.equal(
    (await server.run(['schedules', 'set', 'mail', 'x', '--every', '5m', '--cron', '* * * * *'])).code,
    2,
  );
  assert.equal(
    (await ok('schedules', 'rm', 'mail', 'digest', '--dry-run')).stdout,
    'mail digest: would not tick 0 8 * * 1-5 (Europe/Berlin) any more\n',
  );
  assert.equal((await server.run(['schedules', 'rm', 'mail', 'nothing', '--dry-run'])).code, 3);
  await ok('schedules', 'rm', 'mail', 'digest', '--yes');
  assert.equal((await server.run(['schedules', 'rm', 'mail', 'digest', '--yes'])).code, 3);
});

test('an upload under way is listed, shown and cancelled', async () => {
  const begun = await fetch(`${server.url}/v1/uploads`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ drive: 'main', path: 'under/way.bin', size: 5_000_000 }),
  });
  const { id } = (await begun.json()) as { id: string };
  assert.match(
    (await ok('uploads', 'ls')).stdout,
    new RegExp(`^${id} .* 0 B +4\\.8 MiB .*main/under/way\\.bin`, 'm'),
  );
  assert.match((await ok('uploads', 'show', id)).stdout, /received +0 B of 4\.8 MiB \(0 %\)/);
  assert.equal((await ok('uploads', 'cancel', id, '--dry-run')).stdout, `${id}: would be cancelled\n`);
  assert.equal((await server.run(['uploads', 'cancel', 'nothing', '--dry-run'])).code, 3);
  await ok('uploads', 'cancel', id, '--yes');
  assert.match((await ok('uploads', 'show', id)).stdout, /state +cancelled/);
});

test('a file is traced from its id, and its event is in the tail', async () => {
  const up = await server.run(['upload', '-', '--to', 'main/traced.txt', '--json'], { input: 'hello' });
  const [file] = jsonLines<{ nodeId: string }>(up);
  const traced = async (): Promise<string> => (await ok('trace', file!.nodeId)).stdout;
  // Its upload has events of its own, which come first.
  const isTold = async (): Promise<boolean> => /event .*:created +published/.test(await traced());
  await waitUntil('its event is published', isTold, { timeoutMs: PATIENCE_MS });
  assert.match(await traced(), /upload .* completed.*\n.*traced\.txt[\s\S]*file .*active[\s\S]*event/);
  assert.match(
    (await ok('events', 'tail', '--no-follow', '-n', '50')).stdout,
    /repository\.documents\..*traced\.txt/,
  );
  assert.equal(jsonLines(await ok('events', 'tail', '--no-follow', '-n', '1', '--json')).length, 1);
  assert.equal((await server.run(['trace', '00000000-0000-0000-0000-000000000000'])).code, 3);
});

test('the cache is counted, explained, read and invalidated', async () => {
  const up = await server.run(['upload', '-', '--to', 'main/cached.txt', '--json'], { input: 'hello' });
  const [file] = jsonLines<{ nodeId: string }>(up);
  await fetch(`${server.url}/v1/nodes/${file!.nodeId}`);
  const families = async (): Promise<string[]> =>
    jsonLines<{ family: string }>(await ok('cache', 'stats', '--json')).map(({ family }) => family);
  await waitUntil('the server has told its counts', async () => (await families()).includes('node'), {
    timeoutMs: PATIENCE_MS,
  });
  assert.match((await ok('cache', 'stats')).stdout, /^FAMILY +HIT RATE/);
  const key = JSON.stringify({ tenant: 'default', id: file!.nodeId });
  // The event of the upload comes a second behind it, and drops once more what was read in between.
  const isKept = async (): Promise<boolean> => {
    assert.match((await ok('cache', 'get', 'node', key)).stdout, /cached\.txt/);
    const { stdout } = await ok('cache', 'explain', 'node', key);
    return stdout.startsWith('It is in Redis and fresh.\n');
  };
  await waitUntil('what was read is kept', isKept, { timeoutMs: PATIENCE_MS });
  assert.match((await ok('cache', 'invalidate', 'node', key, '--dry-run')).stdout, /would be dropped/);
  await ok('cache', 'invalidate', 'node', key);
  // A busy machine may answer later than the cache waits for Redis.
  const isGone = async (): Promise<boolean> => {
    const { stdout } = await ok('cache', 'explain', 'node', key);
    assert.doesNotMatch(stdout, /^It is in Redis and fresh/);
    return stdout.startsWith('It is not in Redis');
  };
  await waitUntil('it is said to be gone', isGone, { timeoutMs: PATIENCE_MS });
  await ok('cache', 'get', 'node', key);
  const group = '["node:tree","default"]';
  assert.equal(
    (await server.run(['cache', 'invalidate', 'node', '--group', group])).code,
    2,
    'nobody to ask',
  );
  await ok('cache', 'invalidate', 'node', '--group', group, '--yes');
  assert.doesNotMatch((await ok('cache', 'explain', 'node', key)).stdout, /^It is in Redis and fresh/);
  assert.equal((await server.run(['cache', 'explain', 'nothing', '"x"'])).code, 3);
});

test('Redis, status, top and doctor say how it is', async () => {
  assert.match((await ok('redis', 'health')).stdout, /when full +noeviction\n/);
  const status = (await ok('status')).stdout;
  assert.match(status, /ready\njobs +\d/);
  assert.match(status, /Needs attention[\s\S]*dead letters?/);
  const lines = (await ok('top', '--count', '2', '--every', '100ms')).stdout
    .split('\n')
    .filter((line) => line.includes(' mail '));
  assert.equal(lines.length, 2);
  assert.match(lines[0]!, /running waiting=\d+ active=\d+ delayed=\d+ dead=\d+ workers=1/);
  assert.equal(jsonLines<{ atMs: number }>(await ok('top', '--count', '1', '--json')).length, 1);
  const findings = jsonLines<{ what: string; level: string }>(await ok('doctor', '--json'));
  for (const what of ['eviction', 'persistence', 'memory', 'clock of the server', 'clock of Redis', 'key'])
    assert.ok(
      findings.some((finding) => finding.what === what && finding.level !== 'fail'),
      what,
    );
});

interface Finding {
  what: string;
  level: string;
  text: string;
  advice?: string;
}

/** What doctor thinks of one thing, and what it ends with. */
async function diagnosed(
  what: string,
  options: RunOptions = {},
): Promise<{ code: number | null; finding: Finding }> {
  const ran = await server.run(['doctor', '--json'], options);
  const finding = jsonLines<Finding>({ ...ran, stdout: ran.stdout }).find((one) => one.what === what);
  assert.ok(finding, `${what}: ${ran.stdout}`);
  return { code: ran.code, finding };
}

/** As somebody with redis-cli would. */
async function configure(name: string, value: string): Promise<void> {
  const { hostname, port } = new URL(server.redisUrl);
  const socket = connect(Number(port), hostname);
  try {
    socket.write(`CONFIG SET ${name} ${value}\r\n`);
    assert.equal(String(((await once(socket, 'data')) as [Buffer])[0]), '+OK\r\n');
  } finally {
    socket.destroy();
  }
}

test('doctor finds a Redis that evicts and forgets, and says what to do', async () => {
  const wrong = [
    [
      'maxmemory-policy',
      'allkeys-lru',
      'noeviction',
      'eviction',
      'fail',
      /CONFIG SET maxmemory-policy noeviction/,
    ],
    ['appendonly', 'no', 'yes', 'persistence', 'warn', /CONFIG SET appendonly yes/],
  ] as const;
  for (const [name, sick] of wrong) await configure(name, sick);
  for (const [, , , what, level, advice] of wrong) {
    // The server looks at its Redis every few seconds.
    const isSeen = async (): Promise<boolean> => (await diagnosed(what)).finding.level === level;
    await waitUntil(`${what} is found`, isSeen, { timeoutMs: PATIENCE_MS, everyMs: 200 });
    const { code, finding } = await diagnosed(what);
    assert.equal(code, 1, what);
    assert.match(finding.advice ?? '', advice);
  }
  for (const [name, , well] of wrong) await configure(name, well);
});

test('doctor finds clocks that differ and versions that are too old, behind the real answers', async () => {
  const hourMs = 3_600_000;
  // A server whose clock is an hour ahead, and whose parts are of another age.
  const liar = createServer((request, response) => {
    void fetch(`${server.url}${request.url}`).then(async (real) => {
      const answer = JSON.parse(await real.text()) as Record<string, Record<string, unknown>>;
      if (request.url === '/v1/redis') {
        answer['redis']!['nowMs'] = Number(answer['redis']!['nowMs']) - hourMs;
        answer['redis']!['version'] = '6.2.14';
      }
      if (request.url === '/v1/clocks')
        Object.assign(answer, { sqlMs: Date.now() + hourMs, sqlVersion: '12.22' });
      if (request.url === '/openapi.json') answer['info']!['version'] = '9.9.9';
      const date = new Date(Date.now() + hourMs).toUTCString();
      response.writeHead(real.status, { 'Content-Type': 'application/json', Date: date });
      response.end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((resolve) => liar.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(liar.address() as AddressInfo).port}`;
  const ran = await server.run(['doctor', '--json', '--url', url]);
  liar.closeAllConnections();
  liar.close();
  assert.equal(ran.code, 1);
  const found = new Map(jsonLines<Finding>(ran).map((finding) => [finding.what, finding]));
  for (const [what, level, text, advice] of [
    ['server version', 'warn', /^9\.9\.9, this command is/, /the same version on both sides/],
    ['Redis version', 'fail', /^6\.2\.14$/, /upgrade to Redis 7/],
    ['PostgreSQL version', 'fail', /^12\.22$/, /upgrade to PostgreSQL 13/],
    ['clock of the server', 'fail', /^(1 h|59 min).* ahead of the one here$/, /NTP/],
    ['clock of Redis', 'fail', /behind that of the server$/, /NTP/],
    ['clock of PostgreSQL', 'fail', /ahead of that of the server$/, /NTP/],
  ] as const) {
    const finding = found.get(what);
    assert.equal(finding?.level, level, what);
    assert.match(finding.text, text, what);
    assert.match(finding.advice ?? '', advice, what);
  }
});

test('doctor finds settings that nobody reads, and files that others may read or write', async () => {
  // What the runner of the tests sets is nobody's setting.
  const alone = { SLUICE_TEST_RUN: undefined };
  const misspelt = await diagnosed('configuration', { env: { ...alone, SLUICE_REDIS_ULR: 'x' } });
  assert.equal(misspelt.finding.level, 'warn');
  assert.match(misspelt.finding.text, /^nobody reads SLUICE_REDIS_ULR$/);
  assert.match(misspelt.finding.advice ?? '', /check the spelling/);
  assert.equal((await diagnosed('configuration', { env: alone })).finding.text, 'SLUICE_URL: known');

  const data = join(makeOwnedFolder('data'), 'data');
  await mkdir(data);
  await writeFile(join(data, 'secret'), 'x', { mode: 0o600 });
  const env = { SLUICE_DATA_DIR: data };
  assert.equal((await diagnosed('data folder', { env })).finding.level, 'ok');
  await chmod(data, 0o777);
  await chmod(join(data, 'secret'), 0o644);
  const open = await diagnosed('data folder', { env });
  assert.deepEqual([open.code, open.finding.level], [1, 'fail']);
  assert.equal(open.finding.advice, `chmod go-w ${data}`);
  const secret = await diagnosed('secret file', { env });
  assert.match(secret.finding.advice ?? '', /^chmod 600 \S+, and replace what it held$/);

  const config = makeOwnedFolder('config');
  await mkdir(join(config, 'sluice'));
  await writeFile(join(config, 'sluice', 'login.json'), '{"url":', { mode: 0o600 });
  const login = await diagnosed('login', { env: { XDG_CONFIG_HOME: config } });
  assert.deepEqual([login.code, login.finding.level, login.finding.advice], [1, 'fail', 'sluice login']);
});

test('completion proposes the queues of the server', async () => {
  // Whoever pressed Tab waits for a moment only; a busy server is asked again.
  const proposes = async (): Promise<boolean> =>
    (await ok('__complete', 'queues', 'pause', 'ma')).stdout === 'mail\tqueue\n';
  await waitUntil('the queue is proposed', proposes, { timeoutMs: PATIENCE_MS });
});
