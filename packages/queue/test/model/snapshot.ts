// Everything that is in Redis, read in one step, and its comparison with what the model says has to be there. Every key
// counts: one that the model does not know is a leak.
import { createHash } from 'node:crypto';
import type { RedisLink } from '@sluice/redis';
import { whyNot, show } from './foretold.js';
import type { Foretold } from './foretold.js';
import { keysOf } from './keys.js';
import type { KeyContents } from './keys.js';
import type { Model } from './model.js';

/** Of a stream only the newest entries are compared, and how many there are. */
const entriesCompared = 12;

const source = `#!lua flags=no-writes
local all = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  local items
  if kind == 'hash' then items = redis.call('HGETALL', key)
  elseif kind == 'list' then items = redis.call('LRANGE', key, 0, -1)
  elseif kind == 'zset' then items = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'set' then items = redis.call('SMEMBERS', key)
  elseif kind == 'string' then items = { redis.call('GET', key) }
  else
    items = { tostring(redis.call('XLEN', key)) }
    for _, entry in ipairs(redis.call('XREVRANGE', key, '+', '-', 'COUNT', ${entriesCompared})) do
      items[#items + 1] = table.concat(entry[2], '\\n')
    end
  end
  all[#all + 1] = { key, kind, redis.call('PTTL', key), items }
end
return all
`;
const sha = createHash('sha1').update(source).digest('hex');

export interface Entry {
  kind: string;
  ttlMs: number;
  items: string[];
}

/** By the name of the key without what all keys begin with. */
export type Snapshot = Map<string, Entry>;

export async function readSnapshot(link: RedisLink, base: string): Promise<Snapshot> {
  const rows = (await readRows(link)) as [Buffer, Buffer, number, Buffer[]][];
  const snapshot: Snapshot = new Map();
  for (const [key, kind, ttlMs, items] of rows) {
    const name = key.toString('latin1');
    const short = name.startsWith(base) ? name.slice(base.length) : `(foreign) ${name}`;
    snapshot.set(short, {
      kind: kind.toString('latin1'),
      ttlMs,
      items: items.map((item) => item.toString('latin1')),
    });
  }
  return snapshot;
}

async function readRows(link: RedisLink): Promise<unknown> {
  try {
    return await link.call('EVALSHA_RO', [sha, 0]);
  } catch (error) {
    if (!(error instanceof Error) || !error.message.includes('NOSCRIPT')) throw error;
    return link.call('EVAL', [source, 0]);
  }
}

/** The fields of a hash or the scores of a sorted set. */
export function pairsOf(entry: Entry | undefined): Map<string, string> {
  const pairs = new Map<string, string>();
  for (let i = 0; i < (entry?.items.length ?? 0); i += 2) pairs.set(entry!.items[i]!, entry!.items[i + 1]!);
  return pairs;
}

/** Keys of one family, by what follows the family's name. */
export function family(snapshot: Snapshot, name: string): [string, Entry][] {
  return [...snapshot].flatMap(([key, entry]): [string, Entry][] =>
    key.startsWith(name) ? [[key.slice(name.length), entry]] : [],
  );
}

/** Undefined when Redis holds what the model says, and nothing else. */
export function whySnapshotDiffers(model: Model, snapshot: Snapshot): string | undefined {
  const expected = keysOf(model);
  for (const [key, entry] of snapshot) {
    if (key.startsWith('stats:')) {
      if (entry.ttlMs < 0) return `${key} lives for ever`;
      continue;
    }
    const contents = expected.get(key);
    // Counters that came down to nothing stay as zeros.
    if (!contents && key === 'cfg' && [...pairsOf(entry)].every(isSpentCounter)) continue;
    if (!contents) return `the key ${key} should not exist; it holds ${show(entry.items)}`;
    const why = whyEntryDiffers(contents, entry);
    if (why !== undefined) return `${key} ${why}`;
    expected.delete(key);
  }
  for (const [key, { value }] of expected) return `the key ${key} is missing; it should hold ${show(value)}`;
  return whyFiguresDiffer(model, snapshot);
}

function whyEntryDiffers({ kind, value, ends }: KeyContents, entry: Entry): string | undefined {
  if (entry.kind !== kind) return `is a ${entry.kind}, not a ${kind}`;
  if (ends !== 'either' && ends !== entry.ttlMs >= 0)
    return ends ? 'lives for ever' : `ends in ${entry.ttlMs} ms`;
  if (kind === 'stream') return whyStreamDiffers(value as string[][], entry.items);
  if (kind === 'set') return whyNot(value as Foretold[], entry.items.sort());
  if (kind === 'list' || kind === 'string') return whyNot(value as Foretold[], entry.items);
  const fields = value as Map<string, Foretold>;
  const actual = pairsOf(entry);
  for (const [name, text] of actual) {
    const foretold = fields.get(name);
    if (foretold === undefined) {
      if (isSpentCounter([name, text])) continue;
      return `should not have ${name} = ${show(text)}`;
    }
    const why = whyNot(typeof foretold === 'number' ? String(foretold) : foretold, text, `.${name}`);
    if (why !== undefined) return why;
  }
  for (const name of fields.keys())
    if (!actual.has(name)) return `should have ${name} = ${show(fields.get(name))}`;
  return undefined;
}

function isSpentCounter([name, text]: [string, string]): boolean {
  return text === '0' && /^(held|tombstones|loose|baled\d)$/.test(name);
}

function whyStreamDiffers(happened: string[][], [length, ...newest]: string[]): string | undefined {
  if (Number(length) !== happened.length) return `has ${length} entries instead of ${happened.length}`;
  const expected = happened
    .slice(-entriesCompared)
    .toReversed()
    .map((fields) => fields.join('\n'));
  return whyNot(expected, newest);
}

/** A test may run over the end of a minute. */
function whyFiguresDiffer(model: Model, snapshot: Snapshot): string | undefined {
  const sums = new Map<string, number>();
  for (const [, entry] of family(snapshot, 'stats:')) {
    for (const [field, count] of pairsOf(entry)) sums.set(field, (sums.get(field) ?? 0) + Number(count));
  }
  return whyNot(Object.fromEntries(model.stats), Object.fromEntries(sums), 'the figures of the minutes');
}
