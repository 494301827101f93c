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
    const key = keysFor(this.#engine, watched.id)!.progress;
    const from = `(${watched.after}-0`;
    const entries = (await this.#engine.redis.call('XRANGE', [key, from, '+', 'COUNT', atOnce])) as [
      Buffer,
      Buffer[],
    ][];
    for (const [id, flat] of entries) {
      const progress = decode(Number(String(id).split('-')[0]), flat.map(String));
      watched.after = progress.sequence;
      if (this.#watched.has(watched)) watched.listener(progress);
    }
  }
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
