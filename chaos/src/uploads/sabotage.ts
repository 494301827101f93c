// Takes one guard out of the scripts of uploads, in order to prove that the checker would notice. A guard is text; if the text is not
// found the run fails at once, because it would prove nothing.
import { createHash } from 'node:crypto';
import { scripts } from '@sluice/upload/testing';
import type { FaultName } from './faults.js';

type ScriptName = keyof typeof scripts;

export interface Guard {
  /** What it protects from. */
  why: string;
  /** What the checker must say when it is missing. */
  noticed: RegExp;
  cuts: { from: ScriptName[]; text: RegExp; put: string }[];
  /** The trouble that it protects from, if that does not come by itself. */
  faults: FaultName[];
}

export const guards = {
  frames: {
    why: 'frames that are not needed any more stay in Redis, and nobody has paid for them',
    noticed: /frames of .* are left/,
    cuts: [
      { from: ['stored'], text: /freed\[#freed \+ 1\] = attempt [^\n]*/, put: '' },
      { from: ['stored'], text: /redis\.call\('HSET', attempts, '!' [^\n]*/, put: '' },
    ],
    faults: [],
  },
  duplicate: {
    why: 'the same chunk, sent twice at once, is taken for another one',
    noticed: /was told CHUNK_CONFLICT, though it sent the same bytes/,
    cuts: [
      {
        from: ['commit'],
        text: /if [^\n]* == length \.\. ' ' \.\. crc64 then return [^\n]* end/,
        put: '',
      },
    ],
    faults: [],
  },
  budget: {
    why: 'what an upload had reserved never comes back, until nobody may send anything',
    noticed: /the budget says that .* bytes are used/,
    cuts: [{ from: ['finish'], text: /^reserve\(upload, 0\)$/m, put: '' }],
    faults: [],
  },
} as const satisfies Record<string, Guard>;

export type GuardName = keyof typeof guards;

/** Returns a function that puts the guard back. */
export function takeOut(name: GuardName): () => void {
  const before = new Map<{ source: string; sha: string }, { source: string; sha: string }>();
  for (const { from, text, put } of guards[name].cuts) {
    for (const scriptName of from) {
      const script = scripts[scriptName] as { source: string; sha: string };
      if (!text.test(script.source))
        throw new Error(`sabotage ${name}: ${scriptName}.lua does not contain ${text}`);
      if (!before.has(script)) before.set(script, { ...script });
      script.source = script.source.replace(text, put);
      script.sha = createHash('sha1').update(script.source).digest('hex');
    }
  }
  return () => before.forEach((original, script) => Object.assign(script, original));
}
