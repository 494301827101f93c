// The raw keys, read as books: where each job is, and whether every key that is left has a reason to be. The list of keys that may
// exist is docs/redis-keys.md itself; the reasons are here.
import { readFileSync } from 'node:fs';
import type { Entry } from './books.js';

const tombstone = 255;
const bale = 64;
const looseBale = 192;
const counters = ['tombstones', 'held', 'loose', ...[0, 1, 2, 3, 4, 5].map((level) => `baled${level}`)];

export interface BooksView {
  /** How it ended ('d' or 'c') and its result, of jobs that are remembered. */
  results: Map<string, string>;
  dead: Set<string>;
  /** Failed attempts of dead jobs, each a JSON text. */
  tries: Map<string, string[]>;
  /** Payloads of dead jobs. */
  payloads: Map<string, string>;
  /** Jobs that have not ended, and where they are. */
  unfinished: Map<string, string>;
  /** Every claim, when the event stream was on. */
  claims: { token: string; ids: string[] }[];
  /** What the minutes counted. */
  counted: { done: number; dead: number; cancelled: number };
  /** Dead letters moved by named replays. */
  replayed: number;
  /** Keys without a reason, and books that contradict each other. */
  leaks: string[];
}

export function viewBooks(entries: readonly Entry[], queue: string): BooksView {
  const named = entries.map((entry) => ({ ...entry, name: entry.key.replace(/^sluice:\{[^}]*\}:/, '') }));
  const of = (name: string) => named.filter((entry) => entry.name === name);
  const family = (prefix: string) => named.filter((entry) => entry.name.startsWith(prefix));
  const fields = (name: string) => new Map(of(name).flatMap(({ items }) => pairs(items)));

  const jobs = fields('jobs');
  const results = fields('results');
  const dead = new Set(fields('dead').keys());
  const tries = new Map(family('tries:').map(({ name, items }) => [name.slice('tries:'.length), items]));
  const isTombstone = (packed: string) => packed.charCodeAt(0) === tombstone;
  const unfinished = new Map<string, string>();
  for (const [id, packed] of jobs) {
    if (dead.has(id) || isTombstone(packed)) continue;
    for (const job of jobsUnder(id, packed)) unfinished.set(job, placesOf(id, named));
  }
  const counted = { done: 0, dead: 0, cancelled: 0 };
  for (const { items } of family('stats:')) {
    const minute = new Map(pairs(items));
    for (const field of ['done', 'dead', 'cancelled'] as const)
      counted[field] += Number(minute.get(field) ?? 0);
  }
  // One operation has a record in every partition.
  const replays = of('replays').flatMap(({ items }) =>
    pairs(items).filter(([name]) => name.startsWith('replay:')),
  );
  const replayed = replays.reduce((sum, [, record]) => sum + Number(record.split(' ')[1]), 0);
  const payloads = new Map([...dead].map((id) => [id, payloadOf(jobs.get(id) ?? '')]));

  const leaks = named.flatMap((entry) => objection(entry, queue, dead) ?? []);
  const contradict = (
    one: string,
    ids: Iterable<string>,
    other: string,
    others: { has(id: string): boolean },
  ) => {
    for (const id of ids) if (!others.has(id)) leaks.push(`${id} is in ${one} but not in ${other}`);
  };
  const ended = fields('ended');
  // The labels of a job lie beside its result.
  const idOf = (field: string) => field.replace(/^#/, '');
  contradict('results', [...results.keys()].map(idOf), 'ended', ended);
  contradict('ended', ended.keys(), 'results', results);
  contradict('dead', dead, 'jobs', jobs);
  contradict('dead', dead, 'dead-info', fields('dead-info'));
  contradict('dead-info', fields('dead-info').keys(), 'dead', dead);
  const perCause = new Map(
    family('dead-group:').map(({ name, items }) => [name.slice('dead-group:'.length), items.length / 2]),
  );
  for (const [print, count] of perCause) {
    const told = sum(of('dead-groups').map(({ items }) => Number(new Map(pairs(items)).get(print) ?? 0)));
    if (told !== sumOf(named, `dead-group:${print}`))
      leaks.push(`dead-groups counts ${told} letters of ${print}, there are ${count}`);
  }
  const claims = of('events').flatMap(({ items }) =>
    items.flatMap((text) => {
      const event = JSON.parse(text) as { type: string; token: string; id: string };
      return event.type === 'claimed' ? [{ token: event.token, ids: event.id.split(' ') }] : [];
    }),
  );
  return { results, dead, tries, payloads, unfinished, claims, counted, replayed, leaks };
}

/** Why a key must not be there, or undefined when it may. */
function objection(entry: Entry & { name: string }, queue: string, dead: Set<string>): string | undefined {
  const { key, name, type, ttlMs, items } = entry;
  // The list of all queues, of which there is one.
  if (key === 'sluice:queues' && items[0] === queue && items.length === 2) return undefined;
  if (!key.startsWith(`sluice:{${queue}:`)) return `${key} belongs to nobody`;
  const row = documentedKeys().find(
    (row) => row.name === name || (row.isFamily && name.startsWith(row.name)),
  );
  if (!row) return `${key} is not in docs/redis-keys.md`;
  if (row.type !== type) return `${key} is a ${type}, not a ${row.type}`;
  const suffix = name.slice(row.name.length);
  const strangers = (ids: string[]) => {
    const alive = ids.filter((id) => !dead.has(id));
    return alive.length > 0 ? `${key} still names ${alive.slice(0, 5).join(', ')}` : undefined;
  };
  switch (row.name) {
    case 'cfg': {
      const conf = new Map(pairs(items));
      const wrong = counters.filter((field) => Number(conf.get(field) ?? 0) !== 0);
      return wrong.length > 0
        ? `${key}: ${wrong.map((field) => `${field} is ${conf.get(field)}`).join(', ')}`
        : undefined;
    }
    case 'jobs':
      return strangers(pairs(items).map(([id]) => id));
    case 'dependents':
    case 'progress':
      return strangers(pairs(items).map(([id]) => id));
    case 'tries:':
      return strangers([suffix]);
    case 'logs:':
      return ttlMs >= 0 ? undefined : strangers([suffix]);
    case 'wake':
      return items.length === 1 ? undefined : `${key} holds ${items.length} tokens`;
    case 'producer:':
    case 'unique:':
    case 'stats:':
      return ttlMs >= 0 ? undefined : `${key} never expires`;
    case 'ended':
    case 'results':
    case 'dead':
    case 'dead-info':
    case 'dead-groups':
    case 'dead-group:':
    case 'dead-titles':
    case 'replays':
    case 'events':
      return undefined;
    default:
      return `${key} is left over: ${items.slice(0, 6).join(' ').slice(0, 120)}`;
  }
}

interface DocumentedKey {
  name: string;
  type: string;
  isFamily: boolean;
}

let documented: DocumentedKey[] | undefined;

function documentedKeys(): DocumentedKey[] {
  if (documented) return documented;
  const page = readFileSync(new URL('../../../docs/redis-keys.md', import.meta.url), 'utf8');
  documented = [...page.matchAll(/^\|((?:\s*`[^`]+`,?)+)\s*\|\s*(\w+)\s*\|/gm)].flatMap(([, names, type]) =>
    [...names!.matchAll(/`([^`]+)`/g)].map(([, name]) => ({
      name: name!.replace(/<.*$/, ''),
      type: type!.toLowerCase(),
      isFamily: name!.includes('<'),
    })),
  );
  return documented;
}

function placesOf(id: string, named: readonly (Entry & { name: string })[]): string {
  const places = named.filter(({ name, type, items }) => {
    if (name === 'jobs' || name === 'dependents') return false;
    const members = type === 'hash' || type === 'zset' ? pairs(items).map(([member]) => member) : items;
    return members.includes(id);
  });
  return places.length > 0 ? places.map(({ name }) => name).join(' and ') : 'no list at all';
}

/** A field of `jobs` is a job, or a bale: a few jobs that were added together. What is left of a loose bale is none. */
function jobsUnder(name: string, packed: string): string[] {
  const kind = packed.charCodeAt(0);
  if (kind === looseBale) return [];
  if (kind !== bale) return [name];
  return Array.from({ length: packed.charCodeAt(1) }, (_, i) => `${name.slice(1)}.${i}`);
}

/** Eight bytes of header; with the options flag, two bytes of length and the options; then the payload. */
function payloadOf(packed: string): string {
  const hasOptions = packed.charCodeAt(0) % 2 === 1;
  const optionsLength = hasOptions ? 2 + packed.charCodeAt(8) * 256 + packed.charCodeAt(9) : 0;
  return packed.slice(8 + optionsLength);
}

function sumOf(named: readonly (Entry & { name: string })[], name: string): number {
  return sum(named.filter((entry) => entry.name === name).map(({ items }) => items.length / 2));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function pairs(items: readonly string[]): [string, string][] {
  const list: [string, string][] = [];
  for (let i = 0; i < items.length; i += 2) list.push([items[i]!, items[i + 1]!]);
  return list;
}
