// What the model foretells, and how it is compared with what Redis shows.
//
// Most of it is exact. A time that a script read from the clock of Redis is not: the model only knows that it lies between
// the moments before and after the call. Such a time is a Moment, which becomes exact when Redis shows it for the first
// time, and has to stay the same afterwards.

/** The clock of this process and that of Redis are the same, but each rounds for itself. */
const roundingMs = 1;

export class Moment {
  from: number;
  /** Absent once the time is known. */
  to: number | undefined;

  constructor(from: number, to?: number) {
    this.from = from;
    this.to = to;
  }

  plus(ms: number): Moment {
    return new Moment(this.from + ms, this.to === undefined ? undefined : this.to + ms);
  }

  /** How long after another one it is. */
  minus(other: Moment): Moment {
    if (this.to === undefined && other.to === undefined) return new Moment(this.from - other.from);
    return new Moment(this.from - (other.to ?? other.from), (this.to ?? this.from) - other.from);
  }

  /** The time, as far as it is known. */
  get ms(): number {
    return this.from;
  }

  accepts(actual: number): boolean {
    if (this.to === undefined) return actual === this.from;
    if (!(actual >= this.from - roundingMs && actual <= this.to + roundingMs)) return false;
    this.from = actual;
    this.to = undefined;
    return true;
  }

  toString(): string {
    return this.to === undefined ? `${this.from}` : `${this.from}…${this.to}`;
  }
}

/** Text that is compared by what it means rather than byte by byte: JSON, msgpack, a list in any order. */
export class Meaning {
  readonly value: unknown;
  readonly #read: (actual: string) => unknown;

  constructor(value: unknown, read: (actual: string) => unknown) {
    this.value = value;
    this.#read = read;
  }

  accepts(actual: unknown): boolean {
    if (typeof actual !== 'string') return false;
    try {
      return whyNot(this.value as Foretold, this.#read(actual)) === undefined;
    } catch {
      return false;
    }
  }

  toString(): string {
    return show(this.value);
  }
}

export type Foretold = string | number | null | Moment | Meaning | Foretold[] | { [name: string]: Foretold };

export function json(value: unknown): Meaning {
  return new Meaning(value, (actual) => JSON.parse(fromWire(actual)) as unknown);
}

export function packed(value: unknown): Meaning {
  return new Meaning(value, (actual) => unpack(Buffer.from(actual, 'latin1')));
}

/** What a lane says, with the number of jobs in its sheaf, and the ids and bales there. */
export function sheaf(said: string, names: string[]): Meaning {
  return new Meaning([said, names], (actual) => {
    const end = actual.indexOf(';');
    return [actual.slice(0, end), unpack(Buffer.from(actual.slice(end + 1), 'latin1'))];
  });
}

/** What is left of a bale whose jobs have their own fields. */
export function looseBale(head: string, ids: string[]): Meaning {
  return new Meaning(['\xc0' + head, ids], (actual) => {
    return [actual.slice(0, 8), unpack(Buffer.from(actual.slice(8), 'latin1'))];
  });
}

/** Pairs in any order, packed. */
export function packedPairs(pairs: [string, string][]): Meaning {
  const sorted = (list: string[][]) => list.map(([a, b]) => `${a}\n${b}`).sort();
  return new Meaning(sorted(pairs), (actual) => {
    const flat = unpack(Buffer.from(actual, 'latin1')) as string[];
    return sorted(flat.flatMap((item, i) => (i % 2 === 0 ? [[item, flat[i + 1]!]] : [])));
  });
}

/** Undefined when `actual` is what was foretold, else where it differs. */
export function whyNot(expected: Foretold, actual: unknown, path = ''): string | undefined {
  if (expected instanceof Moment) {
    const fine =
      (typeof actual === 'number' || typeof actual === 'string') && expected.accepts(Number(actual));
    return fine ? undefined : differ(path, expected, actual);
  }
  if (expected instanceof Meaning)
    return expected.accepts(actual) ? undefined : differ(path, expected, actual);
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual) || actual.length !== expected.length) return differ(path, expected, actual);
    for (let i = 0; i < expected.length; i++) {
      const why = whyNot(expected[i]!, actual[i], `${path}[${i}]`);
      if (why !== undefined) return why;
    }
    return undefined;
  }
  if (typeof expected === 'object' && expected !== null) {
    if (typeof actual !== 'object' || actual === null) return differ(path, expected, actual);
    for (const name of new Set([...Object.keys(expected), ...Object.keys(actual)])) {
      const why = whyNot(expected[name]!, (actual as Record<string, unknown>)[name], `${path}.${name}`);
      if (why !== undefined) return why;
    }
    return undefined;
  }
  return expected === actual ? undefined : differ(path, expected, actual);
}

function differ(path: string, expected: unknown, actual: unknown): string {
  return `${path}: expected ${show(expected)}, got ${show(actual)}`;
}

export function show(value: unknown): string {
  const text = JSON.stringify(value, (_, inner: unknown) =>
    inner instanceof Moment || inner instanceof Meaning
      ? String(inner)
      : inner instanceof Map
        ? Object.fromEntries(inner)
        : inner,
  );
  return text === undefined ? 'nothing' : text.length > 1_000 ? `${text.slice(0, 1_000)}…` : text;
}

/** Bytes travel through the tests as strings of one character per byte. */
export function toWire(text: string): string {
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) > 127) return Buffer.from(text).toString('latin1');
  }
  return text;
}

export function fromWire(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString();
}

/** A reply of Redis, with one character per byte. */
export function plainReply(reply: unknown): unknown {
  if (Buffer.isBuffer(reply)) return reply.toString('latin1');
  return Array.isArray(reply) ? reply.map(plainReply) : reply;
}

/** Msgpack as Lua writes it; an empty table is an empty list. */
export function unpack(bytes: Buffer): unknown {
  let at = 0;
  const text = (length: number) => bytes.toString('latin1', at, (at += length));
  const list = (length: number) => Array.from({ length }, () => next());
  function next(): unknown {
    const head = bytes[at++]!;
    if (head < 0x80) return head;
    if (head === 0x80) return [];
    if ((head & 0xf0) === 0x90) return list(head & 0x0f);
    if ((head & 0xe0) === 0xa0) return text(head & 0x1f);
    if (head === 0xd9) return text(bytes[at++]!);
    if (head === 0xda) return text(bytes.readUInt16BE((at += 2) - 2));
    if (head === 0xdb) return text(bytes.readUInt32BE((at += 4) - 4));
    if (head === 0xdc) return list(bytes.readUInt16BE((at += 2) - 2));
    if (head === 0xdd) return list(bytes.readUInt32BE((at += 4) - 4));
    if (head === 0xcc) return bytes[at++]!;
    if (head === 0xcd) return bytes.readUInt16BE((at += 2) - 2);
    if (head === 0xce) return bytes.readUInt32BE((at += 4) - 4);
    if (head === 0xcb) return bytes.readDoubleBE((at += 8) - 8);
    throw new Error(`msgpack 0x${head.toString(16)} is not expected`);
  }
  return next();
}
