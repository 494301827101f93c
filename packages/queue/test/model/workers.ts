// Commands of workers: sessions, claims with lost replies and forged acknowledgements, every way for a handler to end, rescue.
import * as fc from 'fast-check';
import { word, workerOf } from './calls.js';
import { CommandSet, few, number, pick, sometimes } from './define.js';
import { makePayload } from './world.js';
import type { Worker, World } from './world.js';

export const ofWorkers = new CommandSet();
const { define } = ofWorkers;

export const prints = ['aaaa', 'bbbb', 'cccc'];
const keepResultMs = 5_000_000;
const maxSessions = 4;
const logLinesKept = 1;

function workerAt(world: World, at: number): Worker | undefined {
  return pick([...world.workers.values()], at);
}

function busyWorkerAt(world: World, at: number): Worker | undefined {
  return pick(
    [...world.workers.values()].filter(({ held }) => held.size > 0),
    at,
  );
}

define<{ draining: boolean }>('open', { draining: sometimes(8) }, async (world, { draining }) => {
  if (world.workers.size < maxSessions) await world.openWorker(draining);
});

define<{ session: number; drained: boolean }>(
  'renew',
  { session: number, drained: fc.boolean() },
  async (world, { session, drained }) => {
    const worker = workerAt(world, session);
    if (worker) await world.send('renew', () => world.calls.renew(worker.name, drained));
  },
);

/** An operator knows a session, or what the descriptions of several say; perhaps from long ago. */
define<{ session: number; known: boolean; byWorker: boolean; wished: boolean }>(
  'drain',
  { session: number, known: sometimes(5), byWorker: fc.boolean(), wished: fc.boolean() },
  async (world, { session, known, byWorker, wished }) => {
    const name = (known ? undefined : workerAt(world, session)?.name) ?? 's99';
    const [one, other] = byWorker ? ['', workerOf(name)] : [name, ''];
    await world.send('drain', () => world.calls.drain(one, other, wished));
  },
);

define<{ session: number }>('close', { session: number }, async (world, { session }) => {
  const worker = workerAt(world, session);
  if (!worker || worker.lanes.some(({ pending }) => pending)) return;
  if ((await world.send('close', () => world.calls.close(worker.name))) !== 'BUSY')
    world.workers.delete(worker.name);
});

interface ClaimDraw {
  session: number;
  lane: number;
  want: number;
  short: boolean;
  list: number;
  lost: boolean;
  /** Acknowledges something that is not its own, or no longer. */
  forged: number;
  tie: boolean;
}

const claimDraw = {
  session: number,
  lane: fc.nat(1),
  want: fc.nat(12),
  short: fc.boolean(),
  list: fc.nat(5),
  lost: sometimes(4),
  forged: fc.nat(19),
  tie: fc.boolean(),
};

define<ClaimDraw>('claim', claimDraw, async (world, draw) => {
  const worker = workerAt(world, draw.session) ?? (await world.openWorker());
  await claimAs(world, worker, draw);
});

/** A worker whose handlers take no time ends all that it has, and takes as much again. */
define<{ session: number; list: number; want: number; rounds: number; told: boolean }>(
  'workQuickly',
  {
    ...{ session: number, list: fc.nat(5), want: fc.integer({ min: 4, max: 16 }), rounds: few },
    told: sometimes(8),
  },
  async (world, { session, list, want, rounds, told }) => {
    const worker = workerAt(world, session) ?? (await world.openWorker());
    for (let round = 0; round < rounds && world.workers.has(worker.name); round++) {
      for (const [id, { token, plain }] of [...worker.held]) {
        if (!plain) continue;
        world.forget(worker, id);
        worker.acks.push({ id, token });
      }
      const draw = { session, lane: 0, want, short: true, list, lost: false, forged: 99, tie: true };
      await claimAs(world, worker, draw);
      const [seen] = worker.held.keys();
      if (seen !== undefined) await world.calls.look(seen);
      // Somebody begins to listen, and has to hear of what was claimed before.
      if (told) await world.calls.rule({ events: round < rounds - 1 ? 10_000 : null });
    }
  },
);

/** A sleeper finds a token and looks. */
define<ClaimDraw>('wake', claimDraw, async (world, draw) => {
  const worker = workerAt(world, draw.session);
  if (!worker) return;
  const { keys } = world.calls;
  const token = await world.calls.command('LPOP', [keys.wake], (model) => (model.wake = false));
  if (token !== null) await claimAs(world, worker, { ...draw, short: false });
});

async function claimAs(
  world: World,
  worker: Worker,
  { lane, want, short, list, lost, forged, tie }: ClaimDraw,
): Promise<void> {
  const fresh = worker.lanes[lane]!.pending === undefined;
  const acks = fresh ? worker.acks.splice(0) : [];
  if (fresh && forged < 3) acks.push(...forgedAcks(world, worker, forged));
  // What it saw there may be long gone.
  const priority = short ? (worker.plainList >= 0 ? worker.plainList : list) : -1;
  await world.claim(worker, lane, want, priority, acks, lost ? 'lost' : 'heard', {
    tie,
    pretends: forged === 3,
  });
}

function forgedAcks(world: World, worker: Worker, how: number) {
  const others = [...world.model.sessions.values()].filter(({ name }) => name !== worker.name);
  const stolen = others.flatMap(({ active }) => [...active]).slice(0, 1);
  const stale = [...worker.held]
    .slice(0, 1)
    .map(([id, { token }]): [string, string] => [id, String(Number(token) - 1)]);
  const drawn = how === 0 ? stolen : how === 1 ? stale : [['nobody', '1'] as [string, string]];
  return drawn.map(([id, token]) => ({ id, token }));
}

interface FinishDraw {
  session: number;
  job: number;
  how: number;
  when: number;
  keep: boolean;
  stale: boolean;
  copies: number;
}

const finishDraw = {
  session: number,
  job: number,
  how: fc.nat(9),
  when: fc.nat(3),
  keep: fc.boolean(),
  stale: sometimes(8),
  copies: fc.nat(1),
};
const dies = 6;

/** A handler ends, one way or another. */
define<FinishDraw>('finish', finishDraw, finish);
define<FinishDraw>('die', finishDraw, (world, draw) => finish(world, { ...draw, how: dies }));

async function finish(
  world: World,
  { session, job, how, when, keep, stale, copies }: FinishDraw,
): Promise<void> {
  const worker = busyWorkerAt(world, session);
  const held = worker && pick([...worker.held], job);
  if (!held) return;
  const [id, { token: real, plain }] = held;
  const token = stale ? String(Number(real) - 1) : real;
  if (!stale) world.forget(worker, id);
  if (how < 4 && plain && !stale) return void worker.acks.push({ id, token });
  const tried = JSON.stringify([1, 1, 'error', 'w', 'Error', `no ${job}`, '']);
  const end = { id, token, keepMs: 0, result: '', tried: '', detail: '', print: '', title: '' };
  const delay = world.delayMs();
  const send = () => {
    if (how < dies) {
      const kept = { keepMs: keep ? keepResultMs : 0, result: makePayload(job).payload };
      return world.calls.settle(worker.name, [{ ...end, outcome: 'done', ...kept }]);
    }
    if (how === dies) {
      const print = prints[job % prints.length]!;
      const grave = { tried, detail: `{"job":${job}}`, print, title: `died of ${print} ${keep}` };
      return world.calls.settle(worker.name, [{ ...end, outcome: 'dead', ...grave }]);
    }
    const why = how === 7 ? 'snoozed' : how === 8 ? 'returned' : 'failed';
    const at = { delay: when === 0 ? delay : when === 1 ? 0 : '', runAt: when === 2 ? 5 : '' } as const;
    return world.calls.retry(worker.name, [{ id, token, why, ...at, tried: why === 'failed' ? tried : '' }]);
  };
  const reply = await world.send('finish', send, copies);
  if (word(reply) === 'LEASE_LOST') world.workers.delete(worker.name);
}

define<{ session: number; job: number; log: boolean; value: number; stale: boolean }>(
  'note',
  { session: number, job: number, log: fc.boolean(), value: number, stale: sometimes(8) },
  async (world, { session, job, log, value, stale }) => {
    const worker = busyWorkerAt(world, session);
    const held = worker && pick([...worker.held], job);
    if (!held) return;
    const [id, hold] = held;
    const token = stale ? String(Number(hold.token) + 1) : hold.token;
    const kind = log ? 'log' : 'progress';
    hold.plain = hold.plain && stale;
    await world.send('note', () =>
      world.calls.note(worker.name, id, token, kind, `"${value}"`, logLinesKept),
    );
  },
);

define<{ chunk: number; until: boolean; late: boolean }>(
  'rescue',
  { chunk: few, until: fc.boolean(), late: fc.boolean() },
  async (world, { chunk, until, late }) => {
    for (;;) {
      const [answer, session, , more] = (await world.calls.rescue(chunk)) as [string, string, number, number];
      if (answer !== 'RESCUED') return;
      // It does not know yet; whatever it says now is refused.
      if (late && more === 1) {
        await world.calls.open(session);
        await world.calls.renew(session);
      }
      if (!until) return;
    }
  },
);

/** Any call of before arrives once more; nobody reads its answer. */
define<{ call: number }>('echo', { call: number }, async (world, { call }) => {
  await pick(world.echoes, call)?.send();
});

define<object>('flushScripts', {}, (world) => world.calls.flushScripts());

/** As after a restore, or a failover to a server whose clock is behind. */
define<{ ahead: number }>('tokenAhead', { ahead: number }, async (world, { ahead }) => {
  const token = String(Math.max(Number(world.model.token), (Date.now() + 60_000) * 1000) + ahead);
  await world.calls.command('HSET', [world.calls.keys.cfg, 'token', token], (model) => (model.token = token));
});
