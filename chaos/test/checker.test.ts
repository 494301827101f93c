// The checker on small books made by hand: what it lets pass, and what it objects to.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Entry } from '../src/books.js';
import { check } from '../src/checker.js';
import { files } from '../src/evidence.js';
import type {
  FaultLine,
  GapLine,
  LedgerLine,
  OperatorLine,
  ProducerLine,
  SessionLine,
} from '../src/evidence.js';
import { faults, usualPace } from '../src/faults.js';
import { findFailPoints } from '../src/failPoints.js';
import { Random } from '@sluice/testbed/random';
import { planStrikes, strikeAll } from '../src/strikes.js';

const leaseMs = 2_000;
const token = '1700000000000001';
const laterToken = '1700000000500000';
const base = 'sluice:{chaos:0}:';

interface Story {
  producer: ProducerLine[];
  ledger: LedgerLine[];
  operator: OperatorLine[];
  faults: FaultLine[];
  sessions: SessionLine[];
  gaps: GapLine[];
  books: Entry[];
}

/** One plain job that was accepted, had its effect, and is done. */
function story(): Story {
  const intent: ProducerLine = { e: 'intent', at: 1, key: 'k', kind: 'quick', remembered: false };
  const accepted: ProducerLine = { e: 'accepted', at: 2, key: 'k', id: 'job', ours: true };
  const stats = { key: `${base}stats:1`, type: 'hash', ttlMs: 1_000, items: ['done', '1'] };
  const ledger = [line('run', token), line('effect', token)];
  return {
    producer: [intent, accepted],
    ledger,
    operator: [],
    faults: [],
    sessions: [],
    gaps: [],
    books: [stats],
  };
}

function line(e: LedgerLine['e'], token: string, more: Partial<LedgerLine> = {}): LedgerLine {
  return { e, at: 5, id: 'job', key: 'k', token, pid: 7, kind: 'quick', attempt: 1, crashes: 0, ...more };
}

function judge(change: (story: Story) => void): string[] {
  const told = story();
  change(told);
  const folder = mkdtempSync(join(tmpdir(), 'sluice-checker-'));
  const write = (name: string, lines: object[]) =>
    writeFileSync(join(folder, name), lines.map((one) => `${JSON.stringify(one)}\n`).join(''));
  try {
    write(files.producer('p'), told.producer);
    write(files.ledger, told.ledger);
    write(files.operator, told.operator);
    write(files.faults, told.faults);
    write(files.sessions, told.sessions);
    write(files.gaps, told.gaps);
    writeFileSync(join(folder, files.books), JSON.stringify(told.books));
    return check(folder, { queue: 'chaos', leaseMs }).violations;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const session: SessionLine = {
  session: 's',
  partition: 0,
  pid: 7,
  usedAt: 10,
  bornAt: 0,
  seenAt: 20_000,
  goneAt: 20_000,
};

test('books in order are left alone', () => {
  assert.deepEqual(
    judge(() => {}),
    [],
  );
});

test('a job that was accepted and is nowhere is a violation', () => {
  const [first] = judge((told) => (told.ledger = []));
  assert.match(first!, /job \(quick\) vanished: accepted/);
});

test('a job that ran and is nowhere is a violation, though nobody had confirmed it', () => {
  const [first] = judge((told) => {
    told.producer = told.producer.filter(({ e }) => e !== 'accepted');
    told.ledger = told.ledger.filter(({ e }) => e === 'run');
  });
  assert.match(first!, /job \(quick\) vanished: it ran, unconfirmed/);
});

test('a job that is still held at the end is a violation, and its session a leak', () => {
  const violations = judge((told) => {
    told.books.push({ key: `${base}jobs`, type: 'hash', ttlMs: -1, items: ['job', '\0\0\0\0\0\0\0\0{}'] });
    told.books.push({ key: `${base}active:s`, type: 'hash', ttlMs: -1, items: ['job', token] });
  });
  assert.match(violations.join('\n'), /has not ended: unfinished \(in active:s\)/);
  assert.match(violations.join('\n'), /leak: .*active:s is left over/);
});

test('an end that was counted twice is a violation', () => {
  const [first] = judge((told) => (told.books[0]!.items = ['done', '2']));
  assert.match(first!, /counted 2 jobs done; 1 are/);
});

test('a result of a token that was not the newest is a violation', () => {
  const violations = judge((told) => {
    told.ledger.push(line('run', laterToken), line('effect', laterToken));
    told.books.push({ key: `${base}ended`, type: 'zset', ttlMs: -1, items: ['job', '9'] });
    const result = `dj${JSON.stringify({ token, key: 'k' })}`;
    told.books.push({ key: `${base}results`, type: 'hash', ttlMs: -1, items: ['job', result] });
  });
  assert.match(
    violations.join('\n'),
    new RegExp(`done by token ${token}, but ${laterToken} was claimed later`),
  );
});

test('one add that became two jobs is a violation', () => {
  const violations = judge((told) => {
    told.ledger.push(line('run', laterToken, { id: 'twin' }), line('effect', laterToken, { id: 'twin' }));
    told.books[0]!.items = ['done', '2'];
  });
  assert.match(violations.join('\n'), /k was added as several jobs: job, twin/);
});

test('a key without a reason or without an end is a leak', () => {
  const violations = judge((told) => {
    told.books.push({ key: `${base}producer:p`, type: 'hash', ttlMs: -1, items: ['0', '1'] });
    told.books.push({ key: `${base}surprise`, type: 'string', ttlMs: -1, items: ['x'] });
  });
  assert.match(violations.join('\n'), /producer:p never expires/);
  assert.match(violations.join('\n'), /surprise is not in docs\/redis-keys.md/);
});

test('a rescue later than lease + 1 s is a violation, unless nobody could', () => {
  const rescuer: SessionLine = { ...session, session: 'r', pid: 8, goneAt: null, seenAt: 90_000 };
  const late = (told: Story) => {
    told.faults.push({ f: 'death', at: 15_000, pid: 7, name: 'worker-1', how: 'SIGKILL' });
    told.sessions.push(session, rescuer);
  };
  assert.match(judge(late).join(), /rescued only 5000 ms later, in 0 ms of which nobody could/);
  const excused = judge((told) => {
    late(told);
    told.gaps.push({ g: 'silence', from: 15_500, to: 18_000 });
  });
  assert.deepEqual(excused, []);
});

test('a session taken from a process that was alive and well is a violation', () => {
  assert.match(
    judge((told) => void told.sessions.push(session)).join(),
    /though the process was alive and well/,
  );
  const frozen = judge((told) => {
    told.sessions.push(session);
    told.faults.push({ f: 'fault', name: 'stop', from: 17_500, to: 21_000, pid: 7 });
  });
  assert.deepEqual(frozen, []);
});

test('the same seed makes the same plan', () => {
  const plan = () =>
    planStrikes(faults, new Random('7'), 20_000, ['kill', 'stop', 'lose'], usualPace).map(
      ({ atMs, name }) => `${atMs} ${name}`,
    );
  assert.deepEqual(plan(), plan());
  assert.ok(plan().length > 20);
});

test('a strike that fails is told, and the others are carried out', async () => {
  const [said, done]: [string[], string[]] = [[], []];
  const scene = { faults: { write: () => {} } as never, say: (line: string) => void said.push(line) };
  const fault = (name: string, works: boolean) => ({
    what: name,
    share: 1,
    strike: async () => {
      if (!works) throw new Error('nobody is there');
      done.push(name);
    },
  });
  const two = { broken: fault('broken', false), sound: fault('sound', true) };
  const plan = planStrikes(two, new Random('1'), 10, ['broken', 'sound'], {
    firstStrikeMs: 1,
    pausesMs: [1, 2],
  });
  const { misses, counts } = await strikeAll(two, scene, plan);
  assert.equal(misses.length, counts.get('broken'));
  assert.equal(misses[0], 'broken: Error: nobody is there');
  assert.deepEqual(said, misses);
  assert.equal(done.length, counts.get('sound'));
});

test('every fail point of the queue has a name of its own', () => {
  const names = findFailPoints().map(({ name }) => name);
  assert.ok(names.length >= 40, `only ${names.length} fail points found`);
  assert.equal(new Set(names).size, names.length);
});
