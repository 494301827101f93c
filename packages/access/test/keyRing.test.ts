// The ring of keys: known everywhere soon, at the price of one small question, whatever strangers do.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSluiceError, ManualClock } from '@sluice/base';
import type { LiveKey } from '@sluice/records';
import { Access, KeyRing, newKey, newSecret } from '../src/index.js';

/** The keys of the records, as far as a ring looks at them. */
class Source {
  keys: LiveKey[] = [];
  endedSessions: string[] = [];
  revision = 0;
  closed = false;
  isAway = false;
  questions = 0;
  reads = 0;
  touched: string[][] = [];

  change(keys: LiveKey[]): void {
    this.keys = keys;
    this.closed ||= keys.length > 0;
    this.revision++;
  }

  async state() {
    this.questions++;
    if (this.isAway) throw new Error('away');
    return { revision: this.revision, closed: this.closed };
  }

  async live() {
    this.reads++;
    return { keys: this.keys, endedSessions: this.endedSessions };
  }

  async touch(ids: string[]) {
    if (ids.length > 0) this.touched.push(ids);
  }
}

function made(more: Partial<LiveKey> = {}): { text: string; key: LiveKey } {
  const { id, text, digest } = newKey();
  const key: LiveKey = {
    ...{ id, digest, tenant: 'acme', role: 'operator', name: 'a program' },
    ...{ expiresAt: null, oldDigest: null, oldUntil: null },
    ...more,
  };
  return { text, key };
}

async function ringOf(source: Source) {
  const clock = new ManualClock(Date.now());
  const ring = new KeyRing({ keys: source, clock });
  await ring.start();
  const access = new Access({ keys: [], ring, secret: 'only for this test' });
  const ask = async (text: string): Promise<string> => {
    try {
      return (await access.identify({ authorization: `Bearer ${text}` })).role;
    } catch (error) {
      return isSluiceError(error) ? error.code : String(error);
    }
  };
  return { clock, ring, access, ask };
}

test('a known key is recognised without asking anybody, and without waiting', async () => {
  const source = new Source();
  const { text, key } = made();
  source.change([key]);
  const { access } = await ringOf(source);
  const asked = source.questions;
  for (let index = 0; index < 1_000; index++) {
    const principal = access.identify({ 'x-sluice-key': text });
    assert.ok(!(principal instanceof Promise));
    assert.deepEqual(principal.key, { id: key.id, name: 'a program' });
  }
  assert.equal(source.questions, asked);
});

test('a revoked key opens nothing after the next look, two seconds later', async () => {
  const source = new Source();
  const { text, key } = made();
  source.change([key]);
  const { clock, ask } = await ringOf(source);
  assert.equal(await ask(text), 'operator');
  source.change([]);
  await clock.advance(2_000);
  assert.equal(await ask(text), 'UNAUTHENTICATED');
  assert.equal(source.reads, 2);
});

test('keys that do not change are read once; looking for changes is one question in two seconds', async () => {
  const source = new Source();
  source.change([made().key]);
  const { clock } = await ringOf(source);
  await clock.advance(20_000);
  assert.deepEqual([source.questions, source.reads], [11, 1]);
});

test('a flood of unknown keys is one question a second', async () => {
  const source = new Source();
  source.change([made().key]);
  const { clock, ask } = await ringOf(source);
  await clock.advance(1_500);
  const before = source.questions;
  const answers = await Promise.all(Array.from({ length: 500 }, () => ask(newKey().text)));
  for (let index = 0; index < 500; index++) answers.push(await ask(newKey().text));
  assert.deepEqual(new Set(answers), new Set(['UNAUTHENTICATED']));
  assert.equal(source.questions - before, 1);
  // What does not even look like a key asks nothing.
  await clock.advance(1_200);
  const later = source.questions;
  for (const text of ['slk_', `${newKey().text}x`, 'x'.repeat(10_000), `slk_${'0'.repeat(16)}_`])
    assert.equal(await ask(text), 'UNAUTHENTICATED');
  assert.equal(source.questions, later);
});

test('a key that was made a moment ago in another process is found', async () => {
  const source = new Source();
  source.change([made().key]);
  const { clock, ask } = await ringOf(source);
  await clock.advance(1_500);
  const { text, key } = made({ role: 'viewer' });
  source.change([...source.keys, key]);
  assert.equal(await ask(text), 'viewer');
});

test('a process that slept looks again before it believes what it knew', async () => {
  const source = new Source();
  const { text, key } = made();
  source.change([key]);
  let nowMs = 0;
  // Time passes without any timer: the process was stopped.
  const clock = { now: () => Date.now(), monotonicMs: () => nowMs, setTimer: () => ({ cancel: () => {} }) };
  const ring = new KeyRing({ keys: source, clock });
  await ring.start();
  const access = new Access({ keys: [], ring, secret: 'only for this test' });
  source.change([]);
  nowMs = 3_600_000;
  await assert.rejects(
    async () => access.identify({ 'x-sluice-key': text }),
    (error) => isSluiceError(error, 'UNAUTHENTICATED'),
  );
});

test('without a database known keys are good for some minutes, and then refused as "try again"', async () => {
  const source = new Source();
  const { text, key } = made();
  source.change([key]);
  const { clock, ask } = await ringOf(source);
  source.isAway = true;
  await clock.advance(60_000);
  assert.equal(await ask(text), 'operator');
  await clock.advance(300_000);
  assert.equal(await ask(text), 'KEYS_UNAVAILABLE');
  source.isAway = false;
  await clock.advance(2_000);
  assert.equal(await ask(text), 'operator');
});

test('a key expires by itself, and the text before a rotation when its time is over', async () => {
  const source = new Source();
  const { text, key } = made();
  const next = newSecret(key.id);
  const soon = new Date(Date.now() + 3_000);
  const short = made({ expiresAt: soon });
  source.change([
    { ...key, digest: next.digest, oldDigest: key.digest, oldUntil: new Date(Date.now() + 60_000) },
    short.key,
  ]);
  const { clock, ask } = await ringOf(source);
  assert.deepEqual([await ask(text), await ask(next.text)], ['operator', 'operator']);
  assert.equal(await ask(short.text), 'operator');
  await clock.advance(4_000);
  assert.equal(await ask(short.text), 'UNAUTHENTICATED');
  source.change([{ ...key, digest: next.digest, oldDigest: key.digest, oldUntil: new Date(Date.now() - 1) }]);
  await clock.advance(2_000);
  assert.deepEqual([await ask(text), await ask(next.text)], ['UNAUTHENTICATED', 'operator']);
});

test('many uses of a key are one note in a minute', async () => {
  const source = new Source();
  const { text, key } = made();
  source.change([key]);
  const { clock, ring, ask } = await ringOf(source);
  for (let index = 0; index < 50; index++) await ask(text);
  await clock.advance(62_000);
  assert.deepEqual(source.touched, [[key.id]]);
  await ask(text);
  await ring.stop();
  assert.equal(source.touched.length, 2);
  assert.equal(clock.pendingTimers, 0);
});

test('what a key has made ends with it: tokens, links and sessions', async () => {
  const source = new Source();
  const { text, key } = made();
  source.change([key, made().key]);
  const { clock, access } = await ringOf(source);
  const maker = await access.identify({ 'x-sluice-key': text });
  const later = new Date(Date.now() + 600_000);
  const token = access.makeToken(maker, { drive: 'main' }, later);
  const link = Object.fromEntries(access.signLink(maker, 'node', later, 'inline'));
  const { session } = await access.signIn(text);
  const cookie = `a=b; sluice_session=${session}`;
  const ways = [
    () => access.identify({ authorization: `Bearer ${token}` }),
    () => access.openLink('node', link),
    () => access.identify({ cookie }),
  ];
  const vias = await Promise.all(ways.map(async (way) => (await way()).via));
  assert.deepEqual(vias, ['token', 'link', 'session']);
  source.change(source.keys.slice(1));
  await clock.advance(2_000);
  for (const way of ways) await assert.rejects(async () => way());
});

test('a session ends with the text that it was opened with, and when it was ended', async () => {
  const source = new Source();
  const { text, key } = made();
  source.change([key]);
  const { clock, access } = await ringOf(source);
  const [first, second] = [await access.signIn(text), await access.signIn(text)];
  const see = async (session: string): Promise<string> => {
    try {
      return (await access.identify({ cookie: `sluice_session=${session}` })).role;
    } catch (error) {
      return isSluiceError(error) ? error.code : String(error);
    }
  };
  assert.equal(await see(first.session), 'operator');
  source.endedSessions = [first.principal.session!.id];
  source.change([key]);
  await clock.advance(2_000);
  assert.deepEqual([await see(first.session), await see(second.session)], ['SESSION_ENDED', 'operator']);
  const next = newSecret(key.id);
  source.change([
    { ...key, digest: next.digest, oldDigest: key.digest, oldUntil: new Date(Date.now() + 60_000) },
  ]);
  await clock.advance(2_000);
  assert.equal(await see(second.session), 'operator');
  source.change([{ ...key, digest: next.digest }]);
  await clock.advance(2_000);
  assert.equal(await see(second.session), 'SESSION_ENDED');
  // Changed, doubled, or of another server.
  for (const bad of ['', 'x', `${second.session}x`, `x${second.session}`, second.session.replace('.', '..')])
    assert.equal(await see(bad), 'SESSION_ENDED', bad);
  const twice = { cookie: `sluice_session=x; sluice_session=${second.session}` };
  await assert.rejects(async () => access.identify(twice));
});
