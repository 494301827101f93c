// One request for one operation: right in everything, or wrong in one or two things. Who asks is decided elsewhere.
import type { Random } from '@sluice/testbed/random';
import type { Knowledge } from './knowledge.js';
import { oddBody, oddHeaders, oddJson, oddMethods, oddText, oddTypes } from './oddities.js';
import type { Operation, Schema } from './operations.js';
import { valueOf } from './values.js';

export interface Crafted {
  operation: Operation;
  method: string;
  /** As it is sent. */
  path: string;
  headers: Record<string, string>;
  body?: Buffer;
  /** What was bent, for the reader of a finding. */
  bent: string[];
}

const twists = [
  'path',
  'query',
  'twice',
  'extra',
  'header',
  'body',
  'field',
  'type',
  'method',
  'traversal',
] as const;
type Twist = (typeof twists)[number];

/** Of all requests so many are as they should be: what is refused at the door tests nothing behind it. */
const rightShare = 0.45;

export function craft(operation: Operation, random: Random, known: Knowledge): Crafted {
  const count = random.chance(rightShare) ? 0 : random.chance(0.8) ? 1 : 2;
  const bent = new Set(random.shuffled(twists).slice(0, count));
  const has = (twist: Twist): boolean => bent.has(twist);
  const headers: Record<string, string> = {};
  for (const { name, schema } of operation.parameters.filter((each) => each.in === 'header'))
    if (random.chance(0.2))
      headers[name.replace('<name>', 'note')] = headerValue(name, schema, random, known);
  if (has('header')) Object.assign(headers, oddHeaders(random));
  const body = bodyOf(operation, random, known, has, headers);
  return {
    operation,
    method: has('method') ? random.pick([...oddMethods, 'PUT', 'PATCH', 'POST']) : operation.method,
    path: `${addressOf(operation, random, known, has)}${queryOf(operation, random, known, has)}`,
    headers,
    ...(body !== undefined && { body }),
    bent: [...bent],
  };
}

type Has = (twist: Twist) => boolean;

function addressOf({ path, group }: Operation, random: Random, known: Knowledge, has: Has): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    if (has('path') && random.chance(0.7)) return encoded(oddText(random), random);
    const told = (name === 'id' ? known.pick(`${group}.id`, random) : undefined) ?? known.pick(name, random);
    const value = told ?? `${name}-${random.between(0, 20)}`;
    return name === 'path' ? value.split('/').map(encodeURIComponent).join('/') : encodeURIComponent(value);
  });
  if (!has('traversal')) return filled;
  const parts = [
    '/..',
    '/../..',
    '/%2e%2e',
    '/.',
    '//',
    '/..;/',
    '/%2e%2e%2f',
    '/\\..',
    '/',
    '.json',
    '%00',
    '/%',
    '%20',
  ];
  const at = random.between(1, filled.length);
  return `${filled.slice(0, at)}${random.pick(parts)}${filled.slice(at)}`;
}

function queryOf({ parameters }: Operation, random: Random, known: Knowledge, has: Has): string {
  const pairs: [string, string][] = [];
  for (const { name, schema } of parameters.filter((each) => each.in === 'query')) {
    const isOdd = has('query') && random.chance(0.6);
    if (!isOdd && !random.chance(0.4)) continue;
    pairs.push([name, isOdd ? oddText(random) : queryText(valueOf(schema, name, random, known))]);
    if (has('twice')) pairs.push([name, oddText(random)]);
  }
  if (has('extra'))
    pairs.push([
      random.pick(['__proto__', 'a[b]', 'constructor', 'limit', 'signature', '']),
      oddText(random),
    ]);
  if (has('twice') && pairs.length === 0) pairs.push(['limit', '1'], ['limit', '2']);
  return pairs.length === 0
    ? ''
    : `?${pairs.map((pair) => pair.map((text) => encoded(text, random)).join('=')).join('&')}`;
}

function queryText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function headerValue(name: string, schema: Schema, random: Random, known: Knowledge): string {
  if (random.chance(0.3)) return oddText(random);
  const usual: Record<string, string[]> = {
    Range: ['bytes=0-9', 'bytes=5-', 'bytes=-3'],
    'If-None-Match': ['*', '"abc"'],
    'Content-Range': ['bytes 0-9/10', 'bytes 0-63/*', 'bytes 0-63/64'],
    'Last-Event-ID': ['0-0', '5'],
  };
  return usual[name] ? random.pick(usual[name]) : queryText(valueOf(schema, name, random, known));
}

function bodyOf(
  { body, parameters }: Operation,
  random: Random,
  known: Knowledge,
  has: Has,
  headers: Record<string, string>,
): Buffer | undefined {
  if (!body) {
    if (!has('body')) return undefined;
    headers['Content-Type'] = random.pick(['application/json', ...oddTypes]);
    return Buffer.from(oddBody(random, '{}'));
  }
  if (body.type !== 'application/json') return rawBody(parameters, random, headers, has);
  const value = valueOf(body.schema, '', random, known);
  if (has('field')) bend(value, random);
  const text = JSON.stringify(value) ?? '';
  headers['Content-Type'] ??= has('type') ? random.pick(oddTypes) : 'application/json';
  return Buffer.from(has('body') ? oddBody(random, text) : text);
}

function rawBody(
  parameters: Operation['parameters'],
  random: Random,
  headers: Record<string, string>,
  has: Has,
): Buffer {
  if (has('type')) headers['Content-Type'] = random.pick(oddTypes);
  const length = random.pick([0, 1, 10, 64, 100, 1_000, 20_000]);
  if (parameters.some(({ name }) => name === 'Content-Range') && !has('header') && random.chance(0.7))
    headers['Content-Range'] = `bytes 0-${length - 1}/*`;
  return Buffer.alloc(length, random.between(0, 255));
}

/** Changes, removes or adds one field somewhere. */
function bend(value: unknown, random: Random): void {
  if (typeof value !== 'object' || value === null) return;
  const object = value as Record<string, unknown>;
  const names = Object.keys(object);
  const inside = names.filter((name) => typeof object[name] === 'object' && object[name] !== null);
  if (inside.length > 0 && random.chance(0.5)) return bend(object[random.pick(inside)], random);
  const name = names.length > 0 ? random.pick(names) : 'field';
  const changes = [
    () => delete object[name],
    () => (object[name] = oddJson(random)),
    () => (object[name] = oddJson(random)),
    () => (object[random.pick(['unknown', 'constructor', 'id', 'tenant', 'role'])] = oddJson(random)),
    () => Object.defineProperty(object, '__proto__', { value: { polluted: true }, enumerable: true }),
  ];
  random.pick(changes)();
}

/** Usually as it should be; sometimes as it is, as far as it can be sent at all. */
function encoded(text: string, random: Random): string {
  if (random.chance(0.2)) return text.replace(/[^\x21-\x7e]|[?#&=]/g, (character) => percent(character));
  return text.replace(/[^A-Za-z0-9._~-]/gu, (character) => percent(character));
}

function percent(character: string): string {
  return [...Buffer.from(character)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
}
