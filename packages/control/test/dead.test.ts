// Dead letters over HTTP: groups, edits, exports; replay and discard as operations.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { GiveUp, type Queue } from '@sluice/queue';
import { keys, openRoom, stopServers, until, type Loose, type Room } from './harness.js';

after(stopServers);

/** Letters of two causes: 'odd' of acme, 'even' of beta. */
async function withLetters(room: Room, count: number): Promise<{ queue: Queue<Loose>; heal: () => void }> {
  const queue = room.queue('mail');
  let heals = false;
  queue.work((job) => {
    if (!heals) throw new GiveUp(job.data.n % 2 === 1 ? 'the odd ones die' : 'an even number kills');
  });
  const jobs = Array.from({ length: count }, (_, n) => ({
    data: { n },
    id: `j${n}`,
    labels: { tenant: n % 2 === 1 ? 'acme' : 'beta' },
  }));
  await queue.addMany(jobs);
  await until('all are dead', async () => (await queue.dead.count()) === count);
  return {
    queue,
    heal: () => {
      heals = true;
    },
  };
}

async function finished(room: Room, id: string, key?: string): Promise<Loose> {
  return until('the operation ended', async () => {
    const { body } = await room.call('GET', `/v1/operations/${id}`, undefined, key);
    return ['done', 'cancelled', 'failed'].includes(body.state) && body;
  });
}

test('dead letters are grouped by cause, paged, exported and edited', async (t) => {
  const room = await openRoom(t);
  await withLetters(room, 9);
  const groups = (await room.call('GET', '/v1/dead/groups')).body;
  assert.deepEqual([groups.letters, groups.items.map((group: Loose) => group.count)], [9, [5, 4]]);
  const [{ fingerprint }] = groups.items;
  const seen: string[] = [];
  for (let next: string | null = ''; next !== null;) {
    const from = next === '' ? '' : `&cursor=${encodeURIComponent(next)}`;
    const { body } = await room.call('GET', `/v1/queues/mail/dead?limit=2&fingerprint=${fingerprint}${from}`);
    seen.push(...body.items.map((letter: Loose) => letter.id));
    next = body.next;
  }
  assert.deepEqual(seen.toSorted(), ['j0', 'j2', 'j4', 'j6', 'j8']);
  const text = (await room.call('GET', '/v1/queues/mail/dead/export?text=odd')).body as string;
  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { id: string; error: { stack: string } });
  assert.deepEqual(lines.map(({ id }) => id).toSorted(), ['j1', 'j3', 'j5', 'j7']);
  assert.match(lines[0]!.error.stack, /GiveUp|odd/);
  const edited = await room.call('PATCH', '/v1/queues/mail/dead/j1', { data: { n: 2, html: '<script>' } });
  assert.deepEqual(edited.body.data, { n: 2, html: '<script>' });
  assert.equal((await room.call('PATCH', '/v1/queues/mail/dead/none', { data: 1 })).status, 404);
});

test('an edit that names the letter it read is refused when somebody edited it meanwhile', async (t) => {
  const room = await openRoom(t);
  await withLetters(room, 1);
  const path = '/v1/queues/mail/dead/j0';
  const etag = (await room.call('GET', path)).headers.get('etag')!;
  const edit = (n: number) => room.call('PATCH', path, { data: { n } }, undefined, { 'If-Match': etag });
  assert.equal((await edit(1)).status, 200);
  const late = await edit(2);
  assert.deepEqual([late.status, late.body.error.code], [409, 'EDIT_CONFLICT']);
  const now = await room.call('GET', path);
  assert.deepEqual(now.body.data, { n: 1 });
  assert.notEqual(now.headers.get('etag'), etag);
});

test('a dry run says how many and moves nothing; a replay runs in the background and counts each once', async (t) => {
  const room = await openRoom(t);
  const { queue, heal } = await withLetters(room, 20);
  const dry = await room.call('POST', '/v1/queues/mail/dead/replay', {
    choice: { text: 'even' },
    dryRun: true,
  });
  assert.deepEqual([dry.status, dry.body.total, dry.body.sample.length], [200, 10, 5]);
  assert.equal(await queue.dead.count(), 20);
  heal();
  const started = await room.call('POST', '/v1/queues/mail/dead/replay', { choice: { text: 'even' } });
  assert.equal(started.status, 202);
  const operation = await finished(room, started.body.id);
  assert.deepEqual([operation.state, operation.progress.moved], ['done', 10]);
  assert.equal(await queue.dead.count(), 10);
  const rest = await room.call('POST', '/v1/queues/mail/dead/discard', { choice: { ids: ['j1', 'j3'] } });
  assert.equal((await finished(room, rest.body.id)).progress.moved, 2);
  assert.equal(await queue.dead.count(), 8);
  const { body } = await room.call('GET', '/v1/operations');
  assert.deepEqual(
    body.items.map((one: Loose) => one.kind),
    ['dead.discard', 'dead.replay'],
  );
  const atWork = await room.call('GET', '/v1/operations?state=waiting,running');
  assert.deepEqual(atWork.body.items, []);
  const over = await room.call('GET', '/v1/operations?state=done&limit=1');
  assert.deepEqual([over.body.items[0].id, over.body.items.length], [rest.body.id, 1]);
});

test('an operation that is paced can be cancelled; what it has moved stays moved', async (t) => {
  const room = await openRoom(t);
  const { queue } = await withLetters(room, 60);
  await queue.pause();
  // So slowly that nobody is too late to stop it.
  const started = await room.call('POST', '/v1/queues/mail/dead/replay', { choice: 'all', perSecond: 1 });
  await until('it has begun', async () => (await queue.dead.count()) < 60);
  await room.call('POST', `/v1/operations/${started.body.id}/cancel`);
  const operation = await finished(room, started.body.id);
  assert.equal(operation.state, 'cancelled');
  const left = await queue.dead.count();
  assert.ok(left > 0 && left < 60, `${left} are left`);
});

test('a tenant replays and discards its own letters only, whatever it chooses', async (t) => {
  const room = await openRoom(t, { withKeys: true });
  const { queue, heal } = await withLetters(room, 10);
  heal();
  const groups = await room.call('GET', '/v1/dead/groups?queue=mail', undefined, keys.acme);
  assert.deepEqual(
    groups.body.items.map((group: Loose) => group.count),
    [5],
  );
  for (const path of ['/v1/queues/mail/dead', '/v1/queues/mail/dead?text=even']) {
    const { body } = await room.call('GET', path, undefined, keys.acme);
    assert.ok(body.items.every((letter: Loose) => letter.labels.tenant === 'acme'));
  }
  assert.equal((await room.call('GET', '/v1/queues/mail/dead/j0', undefined, keys.acme)).status, 404);
  const dry = await room.call(
    'POST',
    '/v1/queues/mail/dead/discard',
    { choice: 'all', dryRun: true },
    keys.acme,
  );
  assert.equal(dry.body.total, 5);
  const foreign = { choice: { ids: ['j0', 'j2', 'j1'] } };
  const started = await room.call('POST', '/v1/queues/mail/dead/discard', foreign, keys.acme);
  assert.equal((await finished(room, started.body.id, keys.acme)).progress.moved, 1);
  assert.equal(
    (await room.call('GET', `/v1/operations/${started.body.id}`, undefined, keys.beta)).status,
    404,
  );
  const all = await room.call('POST', '/v1/queues/mail/dead/replay', { choice: 'all' }, keys.acme);
  assert.equal((await finished(room, all.body.id, keys.acme)).progress.moved, 4);
  assert.equal(await queue.dead.count(), 5);
  const refused = await room.call('POST', '/v1/queues/mail/dead/replay', { choice: 'all' }, keys.viewer);
  assert.equal(refused.status, 403);
});
