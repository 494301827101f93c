// Progress as it happens: a snapshot, then numbered updates, without gaps for whoever keeps up and with the newest for whoever does
// not. One reader asks Redis for all uploads that somebody in this process watches; nobody holds a connection of its own.
import { keysFor, type Engine } from './engine.js';
import type { Status } from './state.js';

export interface Progress {
  sequence: number;
  state: Status;
  receivedBytes: number;
  storedBytes: number;
  size: number | null;
  percent: number | null;
}

type Listener = (progress: Progress) => void;

const pollMs = 100;
const atOnce = 50;
const readAtOnce = 64;

/** Of the stream: its id, and its fields and values. */
type Entry = [Buffer, Buffer[]];

interface Watched {
  id: string;
  after: number;
  listener: Listener;
}

export class ProgressHub {
  readonly #engine: Engine;
  readonly #watched = new Set<Watched>();
  #timer: NodeJS.Timeout | undefined;
  #reading = false;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Calls the listener with every update after `after`; returns what ends it. */
  watch(id: string, after: number, listener: Listener): () => void {
    const watched = { id, after, listener };
    this.#watched.add(watched);
    this.#timer ??= setInterval(() => void this.#poll(), pollMs);
    return () => {
      this.#watched.delete(watched);
      if (this.#watched.size === 0) this.stop();
    };
  }

  /** Whether every change after `after` is still known. A Redis that lost its last second may never have got as far as somebody saw. */
  async remembers(id: string, after: number, sequence: number): Promise<boolean> {
    if (after >= sequence) return after === sequence;
    const [next] = await this.#entries(id, after, 1);
    return next !== undefined && sequenceOf(next) === after + 1;
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #poll(): Promise<void> {
    if (this.#reading) return;
    this.#reading = true;
    try {
      const all = [...this.#watched];
      for (let i = 0; i < all.length; i += readAtOnce)
        await Promise.all(all.slice(i, i + readAtOnce).map((watched) => this.#read(watched)));
    } catch (error) {
      this.#engine.logger.debug({ err: error }, 'progress could not be read');
    } finally {
      this.#reading = false;
    }
  }

  async #read(watched: Watched): Promise<void> {
    for (const entry of await this.#entries(watched.id, watched.after, atOnce)) {
      const progress = decode(sequenceOf(entry), entry[1].map(String));
      watched.after = progress.sequence;
      if (this.#watched.has(watched)) watched.listener(progress);
    }
  }

  async #entries(id: string, after: number, most: number): Promise<Entry[]> {
    const { progress } = keysFor(this.#engine, id)!;
    return (await this.#engine.redis.call('XRANGE', [
      progress,
      `(${after}-0`,
      '+',
      'COUNT',
      most,
    ])) as Entry[];
  }
}

function sequenceOf([id]: Entry): number {
  return Number(String(id).split('-')[0]);
}

function decode(sequence: number, flat: string[]): Progress {
  const value = (name: string): string => flat[flat.indexOf(name) + 1] ?? '';
  const size = value('size') === '' ? null : Number(value('size'));
  return progressOf(
    sequence,
    value('status') as Status,
    Number(value('received')),
    Number(value('stored')),
    size,
  );
}

export function progressOf(
  sequence: number,
  state: Status,
  receivedBytes: number,
  storedBytes: number,
  size: number | null,
): Progress {
  const percent = size === null ? null : size === 0 ? 100 : Math.floor((receivedBytes / size) * 1_000) / 10;
  return { sequence, state, receivedBytes, storedBytes, size, percent };
}
