/**
 * Which failures are the same failure.
 *
 * A thousand dead jobs usually died of three causes. `fingerprint` gives each failure a key that is equal
 * for equal causes: a hash of the error's class, its message with everything that varies replaced by
 * placeholders (`user 17 not found` → `user <num> not found`), and the function and file, without line and
 * column, where it was thrown, so that a redeploy keeps the group.
 *
 * `describeError` comes first: it turns whatever was thrown into three strings of bounded size, with the
 * chain of causes folded in. JavaScript can throw anything: `undefined`, an object whose getters throw, a
 * proxy, a message of 100 MB. None of these may hurt the worker, so every read is guarded and every text is
 * cut, by UTF-8 bytes and never inside a character.
 *
 * All patterns run on at most MAX_NORMALISED_CHARS characters, so that no message can make them slow.
 */

import { createHash } from 'node:crypto';
import { inspect } from 'node:util';

export interface ErrorDescription {
  name: string;
  message: string;
  stack: string;
}

export interface Fingerprint {
  /** 16 hexadecimal characters. */
  key: string;
  /** One line for people. */
  title: string;
}

export const MAX_NAME_BYTES = 128;
export const MAX_MESSAGE_BYTES = 2 * 1024;
export const MAX_STACK_BYTES = 4 * 1024;
export const MAX_TITLE_BYTES = 256;
/** Errors in one chain that are described, the thrown one included. */
const MAX_CHAIN_LENGTH = 5;
/** 500 UTF-16 units are at most 1,500 bytes: a message that describeError has cut gives the same key. */
const MAX_NORMALISED_CHARS = 500;
/** How far into the stack the message may begin: behind the name of the class. */
const MAX_STACK_HEAD_CHARS = 200;

export function fingerprint(error: { name: string; message: string; stack?: string }): Fingerprint {
  const message = normaliseMessage(error.message);
  const frame = topFrame(error.stack ?? '', error.message);
  const hash = createHash('sha256').update(`${error.name}\0${message}\0${frame}`).digest('hex');
  const title = `${error.name}: ${message}${frame && ` at ${frame}`}`.replace(UNPRINTABLE, ' ');
  return { key: hash.slice(0, 16), title: clipUtf8(title, MAX_TITLE_BYTES) };
}

export function describeError(thrown: unknown): ErrorDescription {
  const [own, ...causes] = causeChain(thrown).map(readError) as [Link, ...Link[]];
  const message = [own.message, ...causes.map((cause) => `caused by ${headLine(cause)}`)];
  const stack = [headLine(own) + own.frames, ...causes.map((c) => `Caused by: ${headLine(c)}${c.frames}`)];
  // Equal shares, so that a long stack does not push its causes out.
  const shareBytes = Math.floor(MAX_STACK_BYTES / stack.length) - '\n'.length;
  return {
    name: own.name,
    message: clipUtf8(message.filter((part) => part !== '').join('; '), MAX_MESSAGE_BYTES),
    stack: stack.map((part) => clipUtf8(part, shareBytes)).join('\n'),
  };
}

/** The text if it fits into `maxBytes` of UTF-8, otherwise its start and `…`, never splitting a character. */
export function clipUtf8(text: string, maxBytes: number): string {
  // A UTF-16 unit takes at least one byte, so nothing behind `maxBytes` units can fit.
  const bytes = Buffer.from(text.slice(0, maxBytes + 1));
  if (bytes.length <= maxBytes) return bytes.toString();
  let end = maxBytes - ELLIPSIS_BYTES;
  if (end < 0) return '';
  while (end > 0 && isContinuation(bytes[end]!)) end--;
  return bytes.toString('utf8', 0, end) + ELLIPSIS;
}

function isContinuation(byte: number): boolean {
  return (byte & 0b1100_0000) === 0b1000_0000;
}

const ELLIPSIS = '…';
const ELLIPSIS_BYTES = Buffer.byteLength(ELLIPSIS);

// ── Describing ──────────────────────────────────────────────────────────────────────────────────────────

interface Link {
  name: string;
  message: string;
  /** Stack frames only, each line with its line break in front. */
  frames: string;
}

/** The thrown value, its cause, the cause of that, …; of an AggregateError, the first of its errors. */
function causeChain(thrown: unknown): unknown[] {
  const chain = [thrown];
  while (chain.length < MAX_CHAIN_LENGTH) {
    const last = chain.at(-1);
    const cause =
      read(last, 'name') === 'AggregateError' ? read(read(last, 'errors'), '0') : read(last, 'cause');
    if (cause === undefined || cause === null || chain.includes(cause)) break;
    chain.push(cause);
  }
  return chain;
}

function readError(thrown: unknown): Link {
  const message = read(thrown, 'message');
  if (!isObject(thrown) || typeof message !== 'string') {
    return {
      name: thrown === null ? 'null' : typeof thrown,
      message: clipUtf8(asText(thrown), MAX_MESSAGE_BYTES),
      frames: '',
    };
  }
  const stack = read(thrown, 'stack');
  return {
    name: className(thrown),
    message: clipUtf8(message, MAX_MESSAGE_BYTES),
    frames: typeof stack === 'string' ? framesOf(stack, message) : '',
  };
}

/** The message's first line at most: a message that looks like stack frames must not be taken for them. */
function headLine(link: Link): string {
  const line = link.message.split('\n', 1)[0]!;
  return clipUtf8(line === '' ? link.name : `${link.name}: ${line}`, MAX_TITLE_BYTES);
}

/** Many classes do not set `name`, and are all called Error; the constructor knows better. */
function className(error: object): string {
  const name = read(error, 'name');
  const constructorName = read(read(error, 'constructor'), 'name');
  const best = [name, constructorName].find(
    (n) => typeof n === 'string' && n !== '' && n !== 'Error' && n !== 'Object',
  );
  return clipUtf8(typeof best === 'string' ? best : 'Error', MAX_NAME_BYTES);
}

function asText(thrown: unknown): string {
  if (typeof thrown === 'string') return thrown;
  if (thrown === undefined || thrown === null) return `${thrown} was thrown`;
  try {
    return inspect(thrown, { depth: 2, breakLength: Infinity, maxArrayLength: 20, maxStringLength: 500 });
  } catch {
    return 'a value that cannot be shown was thrown';
  }
}

/** Any property of any value, or undefined. Getters and proxy traps may throw. */
function read(value: unknown, property: string): unknown {
  if (!isObject(value)) return undefined;
  try {
    return Reflect.get(value, property);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}

// ── Normalising ─────────────────────────────────────────────────────────────────────────────────────────

/** Terminal colours, control characters, and the characters that turn the direction of writing. */
const UNPRINTABLE =
  // oxlint-disable-next-line no-control-regex
  /\u001b\[[\d;]*[A-Za-z]|[\u0000-\u0020\u007f-\u009f\u2028-\u202e\u2066-\u2069]+/g;

/** Order matters: what contains others (a URL contains a path, a path contains numbers) comes first. */
const PLACEHOLDERS: readonly (readonly [RegExp, string])[] = [
  [UNPRINTABLE, ' '],
  [/\b[a-z][a-z\d+.-]{1,20}:\/\/[^\s"'`<>)\]}]+/gi, '<url>'],
  [/[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}/g, '<email>'],
  // A quote opens only where no word precedes it (it's no quote); one that was cut off runs to the end.
  [/(?<!\w)(?:"[^"]*(?:"|$)|'[^']*(?:'|$)|`[^`]*(?:`|$)|“[^”]*(?:”|$)|‘[^’]*(?:’|$))/g, '<str>'],
  [/\b[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}\b/gi, '<uuid>'],
  [/\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?Z|[+-]\d\d:?\d\d)?)?\b/g, '<time>'],
  [
    /\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? (?:\d\d? [A-Z][a-z]{2}|[A-Z][a-z]{2} \d\d?) \d{4}(?: \d\d:\d\d:\d\d)?(?: (?:GMT|UTC)(?:[+-]\d{4})?)?(?: \([^)]{1,60}\))?/g,
    '<time>',
  ],
  // Absolute and dotted paths, then relative ones of three steps, or of two with an extension.
  [/(?<![\w>])(?:[A-Za-z]:|~|\.{1,2})?(?:[\\/][\w.@%+~=-]+)+[\\/]?/g, '<path>'],
  [/[\w.@%+-]+(?:(?:[\\/][\w.@%+-]+){2,}[\\/]?|[\\/][\w@%+-]+\.\w+)/g, '<path>'],
  // Hexadecimal, long identifiers and numbers share one placeholder: an id of digits alone is still an id.
  [/\b0x[\da-f]+\b/gi, '<num>'],
  [/\b(?=[a-f]*\d)[\da-f]{8,}\b/gi, '<num>'],
  [/\b(?=[a-z_]*\d)\w{16,}\b/gi, '<num>'],
  [/(?<![\w>])[-+]?\d+(?:[.,:_]\d+)*|\d+/g, '<num>'],
];

function normaliseMessage(message: string): string {
  const bounded = message.slice(0, MAX_NORMALISED_CHARS);
  return PLACEHOLDERS.reduce((text, [pattern, label]) => text.replace(pattern, label), bounded)
    .replace(/ {2,}/g, ' ')
    .trim();
}

/** `parseInvoice (invoice.js)` out of `at async parseInvoice (file:///app/dist/invoice.js:10:5)`. */
function topFrame(stack: string, message: string): string {
  const frames = framesOf(stack, message).split('\n').slice(1);
  // Frames inside Node differ between its versions, and built-ins have no file; the first one outside says more.
  const frame = frames.find((line) => /:\d+\)?$/.test(line) && !line.includes('node:')) ?? frames[0] ?? '';
  const named = /^\s*at (?:async )?(.*?) ?\(([^()]*)\)$/.exec(frame);
  const [name, place] = named ? [named[1]!, named[2]!] : ['', frame.replace(/^\s*at (?:async )?/, '')];
  const file = place
    .replace(/(?::\d+){1,2}(?=[,)]|$)/g, '')
    .replace(/[?#].*$/, '')
    .split(/[\\/]/)
    .at(-1)!
    // Bundlers put a hash of the content into the name.
    .replace(/[-.](?=[a-z]*\d)\w{8,}(?=\.\w+$)/i, '');
  const label = file && name ? `${name} (${file})` : name || file;
  return clipUtf8(label, MAX_NAME_BYTES);
}

/** The lines `at …` behind the message, each with its line break in front. */
function framesOf(stack: string, message: string): string {
  const start = stack.slice(0, MAX_STACK_HEAD_CHARS + message.length).indexOf(message);
  const behind = start < 0 ? stack : stack.slice(start + message.length);
  return behind
    .slice(0, 2 * MAX_STACK_BYTES)
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .map((line) => `\n${line}`)
    .join('');
}
