// Each guard of the scripts, taken out. A guard is a piece of text in a script (if it is not found the test fails, because it
// would prove nothing). Each comes with a short story that goes well with the guard and badly without it, and the ledger of the
// model tests (model/invariants.ts), which sees only calls, replies and keys, has to say so.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { RedisLink } from '@sluice/redis';
import { startRedis } from '@sluice/testbed';
import type { RedisServer } from '@sluice/testbed';
import { Calls, alter, leaseMs, readClaim, word } from './model/calls.js';
import type { Hearing, ScriptName, Variants } from './model/calls.js';
import { Violation } from './model/invariants.js';
import type { Ack } from './model/claiming.js';
import type { NewItem, SettleItem } from './model/model.js';
import { makeItem, makeJob } from './model/world.js';

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

interface Guard {
  /** The name of the test. */
  fact: string;
  scripts: ScriptName[];
  cuts: [text: string, put: string][];
  story: (calls: Calls) => Promise<unknown>;
  objection: RegExp;
}

const ackToken: [string, string][] = [
  ['if state[at] ~= tokens[run] then plain = false end', 'if not state[at] then plain = false end'],
  ['if state[at] ~= tokens[run] then\n', 'if not state[at] then\n'],
];
const grace =
  "if now - renewed > lease_ms * OUTAGE_SHARE then redis.call('HSET', cfg, 'graceUntil', now + lease_ms) end";

const guards: Guard[] = [
  {
    fact: 'without the token in settle.lua a late settlement ends a later claim',
    scripts: ['settle'],
    cuts: [["id) == token and redis.call('HGET', jobs, id)", "id) and redis.call('HGET', jobs, id)"]],
    story: lateSettlement,
    objection: /acted on j0 with token/,
  },
  {
    fact: 'without the token in retry.lua a late return gives a later claim back',
    scripts: ['retry'],
    cuts: [["id) == token and redis.call('HGET', jobs, id)", "id) and redis.call('HGET', jobs, id)"]],
    story: lateReturn,
    objection: /acted on j0 with token/,
  },
  {
    fact: 'without the token in note.lua a late report speaks for a later claim',
    scripts: ['note'],
    cuts: [
      [
        'if token_apart(active .. session, id) ~= token then',
        'if not token_apart(active .. session, id) then',
      ],
    ],
    story: lateReport,
    objection: /acted on j0 with token/,
  },
  {
    fact: 'without the token in claim.lua a late acknowledgement ends a later claim',
    scripts: ['claim'],
    cuts: ackToken,
    story: (calls) => lateAcknowledgement(calls, (acks) => claim(calls, '#1', 1, { acks })),
    objection: /acted on j0 with token/,
  },
  {
    fact: 'without the token in take.lua a late acknowledgement ends a later claim',
    scripts: ['take'],
    cuts: ackToken,
    story: (calls) => lateAcknowledgement(calls, (acks) => take(calls, '#1', 1, { acks })),
    objection: /acted on j0 with token/,
  },
  {
    fact: 'without growing tokens a clock that is behind issues tokens that are stale at birth',
    scripts: ['claim'],
    cuts: [['math.max(tonumber(last or 0) + 1, time[1] * 1000000 + time[2])', 'time[1] * 1000000 + time[2]']],
    story: clockBehind,
    objection: /token \d+ comes after/,
  },
  {
    fact: "without the lane's sequence in claim.lua a repeated call claims what nobody hears of",
    scripts: ['claim'],
    cuts: [['if seq ~= last_seq then return nil end', 'if true then return nil end']],
    story: (calls) => lostReply(calls, (hearing) => claim(calls, '#0', 1, { hearing })),
    objection: /holds j0 and never heard of it/,
  },
  {
    fact: "without the lane's sequence in take.lua a repeated call claims what nobody hears of",
    scripts: ['take'],
    cuts: [['if seq ~= last_seq then return nil end', 'if true then return nil end']],
    story: (calls) => lostReply(calls, (hearing) => take(calls, '#0', 1, { hearing })),
    objection: /holds j0 and never heard of it/,
  },
  {
    fact: 'without the refusal of old numbers a call that is long over claims again',
    scripts: ['claim'],
    cuts: [["if tonumber(seq) < tonumber(last_seq) then return { 'STALE' } end", '']],
    story: oldCall,
    objection: /holds j1 and never heard of it/,
  },
  {
    fact: 'without the request id in add.lua a repeated add adds twice',
    scripts: ['add'],
    cuts: [["if tonumber(last) and tonumber(last) >= tonumber(seq) then return { 'REPEAT', now } end", '']],
    story: (calls) => repeated(() => add(calls, 2)),
    objection: /j0 was accepted a second time|j0 is in 2 places/,
  },
  {
    fact: 'without the request id in addEach.lua a repeated add adds twice',
    scripts: ['addEach'],
    cuts: [['if tonumber(last) and tonumber(last) >= tonumber(seq) then return first_answer(lane) end', '']],
    story: (calls) => repeated(() => calls.addEach('p', '0', 1, [item('k0')])),
    objection: /k0 was accepted a second time|k0 is in 2 places/,
  },
  {
    fact: 'without the mark of an abandoned add its late arrival adds twice',
    scripts: ['add'],
    cuts: [
      ["if last == 'A' .. seq then return { 'ABANDONED', now } end\n", ''],
      ["last = last:match('%d+')", 'last = tonumber(last)'],
    ],
    story: abandonedAdd,
    objection: /j0 was accepted a second time|j0 is in 2 places/,
  },
  {
    fact: 'without the count of messages taken two takers take the same ones',
    scripts: ['intake'],
    cuts: [["~= inboxTaken then\n  return { 'STALE', now, {} }\nend", '~= inboxTaken then now = now end']],
    story: twoTakers,
    objection: /was not the next message/,
  },
  {
    fact: 'without leaving the live ones first a session settles jobs while it is being rescued',
    scripts: ['rescue'],
    cuts: [["redis.call('ZREM', sessions, session)", '']],
    story: settledDuringRescue,
    objection: /although it is being rescued/,
  },
  {
    fact: 'without the mark of a rescue nobody can finish it',
    scripts: ['rescue'],
    cuts: [["redis.call('ZADD', rescuing, now, session)", '']],
    story: settledDuringRescue,
    objection: /nobody will ever find what s0 holds/,
  },
  {
    fact: 'without a fresh lease after an outage the first one back robs the others',
    scripts: ['open', 'renew', 'rescue'],
    cuts: [[grace, '']],
    story: outage,
    objection: /nobody could renew for a whole lease/,
  },
  {
    fact: 'without the deadline in renew.lua a session comes back after its lease',
    scripts: ['renew'],
    cuts: [["if tonumber(deadline) < now and not in_grace(now) then return { 'EXPIRED', now } end", '']],
    story: lateRenewal,
    objection: /renewed \d+ ms too late/,
  },
];

for (const { fact, scripts, cuts, story, objection } of guards) {
  test(`${fact}, and the ledger objects`, async () => {
    await tell(story, {});
    const sabotaged = Object.fromEntries(scripts.map((name) => [name, alter(name, ...cuts)]));
    await assert.rejects(tell(story, sabotaged), (error) => {
      assert.ok(error instanceof Violation, String(error));
      assert.match(error.message, objection);
      return true;
    });
  });
}

async function tell(story: Guard['story'], variants: Variants): Promise<void> {
  await link.call('FLUSHALL', []);
  numbers.clear();
  await story(new Calls(link, undefined, variants));
}

// ── Stories ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** s0 claims j0, gives it back and claims it again: the first token is stale now. */
async function claimedTwice(calls: Calls): Promise<{ first: string; second: string }> {
  await calls.open('s0');
  await add(calls, 1);
  const first = await claim(calls, '#0', 1);
  await calls.retry('s0', [{ id: 'j0', token: first, why: 'returned', delay: '', runAt: '', tried: '' }]);
  const second = await claim(calls, '#0', 1);
  assert.notEqual(first, second);
  return { first, second };
}

async function lateSettlement(calls: Calls): Promise<void> {
  const { first, second } = await claimedTwice(calls);
  await calls.settle('s0', [done('j0', first)]);
  assert.deepEqual(await calls.settle('s0', [done('j0', second)]), ['OK', 'SETTLED']);
}

async function lateReturn(calls: Calls): Promise<void> {
  const { first, second } = await claimedTwice(calls);
  await calls.retry('s0', [{ id: 'j0', token: first, why: 'returned', delay: '', runAt: '', tried: '' }]);
  assert.deepEqual(await calls.settle('s0', [done('j0', second)]), ['OK', 'SETTLED']);
}

async function lateReport(calls: Calls): Promise<void> {
  const { first } = await claimedTwice(calls);
  assert.equal(await calls.note('s0', 'j0', first, 'progress', '50', 1), 'ALREADY');
}

async function lateAcknowledgement(calls: Calls, call: (acks: Ack[]) => Promise<unknown>): Promise<void> {
  const { first } = await claimedTwice(calls);
  await call([{ id: 'j0', token: first }]);
}

async function clockBehind(calls: Calls): Promise<void> {
  await calls.open('s0');
  await add(calls, 1);
  await calls.command('HSET', [calls.keys.cfg, 'token', (Date.now() + 60_000) * 1000], () => {});
  await claim(calls, '#0', 1);
}

async function lostReply(calls: Calls, call: (hearing: Hearing) => Promise<unknown>): Promise<void> {
  await calls.open('s0');
  await add(calls, 4);
  calls.ledger.called('s0');
  await call('lost');
  numbers.set('#0', 0);
  // The call that is repeated is the one that is answered.
  calls.ledger.answered('s0');
  await call('heard');
}

async function oldCall(calls: Calls): Promise<void> {
  await calls.open('s0');
  await add(calls, 4);
  await claim(calls, '#0', 1);
  await claim(calls, '#0', 0);
  numbers.set('#0', 0);
  await claim(calls, '#0', 1, { hearing: 'echo' });
}

async function repeated(call: () => Promise<unknown>): Promise<void> {
  await call();
  await call();
}

async function abandonedAdd(calls: Calls): Promise<void> {
  await calls.addEach('p', '=0', 1, [{ ...item('j0'), own: true }]);
  assert.equal(word(await add(calls, 1)), 'ABANDONED');
}

async function twoTakers(calls: Calls): Promise<void> {
  await calls.push(['one', 'two']);
  const take = (id: string, seq: number) =>
    calls.addEach('p', '0', seq, [{ ...item(id), job: { ...makeJob(id, 1, 3), payload: 'one' } }], {
      taken: 0,
      count: 1,
    });
  await take('m0', 1);
  await take('m1', 2);
}

async function settledDuringRescue(calls: Calls): Promise<void> {
  await calls.open('s0');
  await add(calls, 3);
  const token = await claim(calls, '#0', 3);
  await passLease(calls, 's0');
  const [, , , more, [moved]] = (await calls.rescue(1)) as [string, string, number, number, string[]];
  assert.equal(more, 1);
  const left = ['j0', 'j1', 'j2'].find((id) => id !== moved)!;
  assert.deepEqual(await calls.settle('s0', [done(left, token)]), ['LEASE_LOST']);
  await calls.rescue(5);
}

async function outage(calls: Calls): Promise<void> {
  for (const session of ['s0', 's1']) await calls.open(session);
  await add(calls, 1);
  await claim(calls, '#0', 1);
  for (const session of ['s0', 's1']) await passLease(calls, session);
  await calls.command('HSET', [calls.keys.cfg, 'renewed', Date.now() - 2 * leaseMs], () => {});
  calls.ledger.outage(Date.now() + leaseMs / 2);
  await calls.renew('s1');
  assert.equal(word(await calls.rescue(5)), 'GRACE');
  assert.equal(word(await calls.renew('s0')), 'OK');
}

async function lateRenewal(calls: Calls): Promise<void> {
  await calls.open('s0');
  await passLease(calls, 's0');
  assert.equal(word(await calls.renew('s0')), 'EXPIRED');
}

// ── Their parts ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The number of each lane's last call. */
const numbers = new Map<string, number>();

async function claim(
  calls: Calls,
  lane: string,
  want: number,
  { acks = [], hearing = 'heard' }: { acks?: Ack[]; hearing?: Hearing } = {},
): Promise<string> {
  const reply = await calls.claim(
    { session: 's0', lane, seq: nextNumber(lane), want, acks, idle: false },
    hearing,
  );
  return word(reply) === 'OK' ? readClaim(reply).token : '';
}

async function take(
  calls: Calls,
  lane: string,
  want: number,
  { acks = [], hearing = 'heard' }: { acks?: Ack[]; hearing?: Hearing } = {},
): Promise<void> {
  await calls.take({ session: 's0', lane, seq: nextNumber(lane), want, acks, idle: false }, 3, hearing);
}

function nextNumber(lane: string): number {
  const number = (numbers.get(lane) ?? 0) + 1;
  numbers.set(lane, number);
  return number;
}

/** j0, j1, …: always the first call of its lane. */
function add(calls: Calls, count: number): Promise<unknown> {
  const jobs = Array.from({ length: count }, (_, i) => makeJob(`j${i}`, i, 3));
  return calls.add('p', '0', 1, jobs);
}

function item(id: string): NewItem {
  return makeItem(makeJob(id, 1, 3));
}

function done(id: string, token: string): SettleItem {
  return { id, token, outcome: 'done', keepMs: 0, result: '', tried: '', detail: '', print: '', title: '' };
}

async function passLease(calls: Calls, session: string): Promise<void> {
  await calls.command('ZADD', [calls.keys.sessions, 'XX', Date.now() - 5_000, session], () => {});
}
