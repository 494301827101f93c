// Takes one guard out of the scripts, in order to prove that the checker would notice. A guard is text; if the text is not found the
// run fails at once, because it would prove nothing. Each guard comes with the trouble that it protects from, made frequent.
import { createHash } from 'node:crypto';
import { scripts } from '@sluice/queue/testing';
import type { FaultName } from './faults.js';
import type { Pauses } from './strikes.js';
import type { Kind } from './work.js';

type ScriptName = keyof typeof scripts;

interface Cut {
  from: ScriptName[];
  text: string;
  put: string;
}

export interface Guard {
  /** What it protects from. */
  why: string;
  /** What the checker must say when it is missing. */
  noticed: RegExp;
  cuts: Cut[];
  faults: FaultName[];
  pausesMs?: Pauses;
  /** The scripts whose replies get lost. */
  losing: ScriptName[];
  kinds: Kind[];
  plain: boolean;
  workers: number;
  concurrency: number;
  /** Jobs that each producer adds. */
  perSecond: number;
  /** Switches the event stream on. */
  events?: boolean;
}

const calm = { losing: [], kinds: [], plain: false, workers: 3, concurrency: 8, perSecond: 100 };

export const guards = {
  token: {
    ...calm,
    why: 'a repeated retry, settlement or acknowledgement of an earlier claim ends a later one',
    noticed: /ran as attempt \d+ \(token \d+\), after \d+ failures/,
    cuts: [
      {
        from: ['settle', 'retry'],
        text: "id) == token and redis.call('HGET', jobs, id)",
        put: "id) and redis.call('HGET', jobs, id)",
      },
      { from: ['claim', 'take'], text: 'if state[at] ~= tokens[run] then', put: 'if not state[at] then' },
    ],
    faults: ['lose'],
    pausesMs: [50, 200],
    losing: ['retry'],
    kinds: ['failing', 'quick'],
    // The session that lost the reply must be the one that claims the job again.
    workers: 1,
  },
  sequence: {
    ...calm,
    // A worker that looks through what it holds gives such jobs back: only the events tell that a claim went astray.
    events: true,
    why: 'a claim that is repeated after its reply was lost claims other jobs, and nobody runs the first ones until somebody looks',
    noticed: /was claimed with token \d+, and nobody ran it/,
    cuts: [
      {
        from: ['claim', 'take'],
        text: 'if seq ~= last_seq then return nil end',
        put: 'if true then return nil end',
      },
    ],
    faults: ['lose'],
    pausesMs: [50, 200],
    losing: ['claim', 'take'],
    kinds: ['quick'],
  },
  request: {
    ...calm,
    why: 'an add that is repeated after its reply was lost adds its jobs twice',
    noticed: /the books counted \d+ jobs done; \d+ are/,
    cuts: [
      {
        from: ['add'],
        text: "if tonumber(last) and tonumber(last) >= tonumber(seq) then return { 'REPEAT', now } end",
        put: '',
      },
      {
        from: ['addEach'],
        text: 'if tonumber(last) and tonumber(last) >= tonumber(seq) then return first_answer(lane) end',
        put: '',
      },
    ],
    faults: ['lose'],
    pausesMs: [50, 200],
    losing: ['add', 'addEach'],
    kinds: ['quick'],
    plain: true,
  },
  rescue: {
    ...calm,
    why: 'a session whose jobs are moved without being marked first is not found again after the first chunk',
    noticed: /has not ended: unfinished \(in active:/,
    cuts: [{ from: ['rescue'], text: "redis.call('ZADD', rescuing, now, session)", put: '' }],
    faults: ['kill'],
    pausesMs: [1_200, 1_800],
    kinds: ['slow'],
    plain: true,
    workers: 2,
    // More jobs at once than a rescue moves in one step.
    concurrency: 250,
    perSecond: 500,
  },
  grace: {
    ...calm,
    why: 'after an outage whoever comes back first takes the jobs of all others, who live',
    noticed: /was taken at \d+, though the process was alive and well/,
    cuts: [
      {
        from: ['open', 'renew', 'rescue'],
        text: "if now - renewed > lease_ms * OUTAGE_SHARE then redis.call('HSET', cfg, 'graceUntil', now + lease_ms) end",
        put: '',
      },
    ],
    faults: ['outage'],
    kinds: ['quick', 'long'],
  },
} as const satisfies Record<string, Guard>;

export type GuardName = keyof typeof guards;

/** Returns a function that puts the guard back. */
export function takeOut(name: GuardName): () => void {
  const before = new Map<{ source: string; sha: string }, { source: string; sha: string }>();
  for (const { from, text, put } of guards[name].cuts) {
    for (const scriptName of from) {
      const script = scripts[scriptName] as { source: string; sha: string };
      if (!script.source.includes(text)) {
        throw new Error(`sabotage ${name}: ${scriptName}.lua does not contain "${text}"`);
      }
      if (!before.has(script)) before.set(script, { ...script });
      script.source = script.source.replaceAll(text, put);
      script.sha = createHash('sha1').update(script.source).digest('hex');
    }
  }
  return () => before.forEach((original, script) => Object.assign(script, original));
}
