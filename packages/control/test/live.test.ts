// Live updates: whom they are for, and until when.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { keys, openRoom, stopServers, until, type Loose, type Room } from './harness.js';

after(stopServers);

/** What comes on a stream, by the names of the events, until it ends or the test does. */
async function listen(
  room: Room,
  topics: string,
  key: string,
): Promise<{ sent: [string, Loose][]; ended(): boolean; stop(): void }> {
  const stop = new AbortController();
  const headers = { Authorization: `Bearer ${key}` };
  const reply = await fetch(`${room.url}/v1/live?topics=${topics}`, { headers, signal: stop.signal });
  assert.equal(reply.status, 200);
  const sent: [string, Loose][] = [];
  let isEnded = false;
  const read = async (): Promise<void> => {
    let text = '';
    for await (const bytes of reply.body!) {
      text += Buffer.from(bytes as Uint8Array).toString();
      const whole = text.split('\n\n');
      text = whole.pop()!;
      for (const each of whole) {
        const [, name, data] = /^event: (\w+)\n(?:id: .*\n)?data: (.*)$/.exec(each) ?? [];
        if (name !== undefined) sent.push([name, JSON.parse(data!)]);
      }
    }
  };
  void read()
    .catch(() => {})
    .finally(() => (isEnded = true));
  return { sent, ended: () => isEnded, stop: () => stop.abort() };
}

test('live updates end with the key that opened them', async (t) => {
  const room = await openRoom(t, { withKeys: true });
  const asked = { name: 'for a while', tenant: 'acme', role: 'viewer' };
  const made = (await room.call('POST', '/v1/keys', asked, keys.admin)).body;
  const [brief, lasting] = [
    await listen(room, 'uploads', made.key),
    await listen(room, 'uploads', keys.acme),
  ];
  t.after(() => lasting.stop());
  await until('both are told', async () => brief.sent.length > 0 && lasting.sent.length > 0);
  const revokedMs = performance.now();
  assert.equal((await room.call('DELETE', `/v1/keys/${made.id}`, undefined, keys.admin)).status, 200);
  await until('it ends', async () => brief.ended());
  assert.ok(performance.now() - revokedMs < 5_000);
  assert.equal(lasting.ended(), false);
});

test('a tenant sees its own newest uploads live, however many others have begun since', async (t) => {
  const room = await openRoom(t, { withKeys: true });
  const begin = (tenant: string, path: string) =>
    room.uploads.initiate({ tenant, drive: 'main', path, size: 1_000_000 });
  const own = await begin('acme', 'mine.bin');
  await Promise.all(Array.from({ length: 101 }, (_, n) => begin('beta', `many-${n}.bin`)));
  const live = await listen(room, 'uploads', keys.viewer);
  t.after(() => live.stop());
  await until('it is told', async () => live.sent.length > 0);
  assert.deepEqual(
    live.sent[0]![1].items.map((upload: Loose) => upload.id),
    [own.id],
  );
});
