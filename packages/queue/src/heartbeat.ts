// The heartbeat of a process: one thread with its own connection renews the leases of all its sessions. A busy event loop
// therefore does not look dead. A hung one must not look alive either: main and thread share a little memory, in which main
// says when its loop last turned, when the earliest running job is out of time, and which handler it is in; see
// heartbeatThread.ts for what follows.
import { Worker as Thread } from 'node:worker_threads';
import type { RedisTarget } from '@sluice/redis';
import { defaultBackoff } from './backoff.js';
import type { Partition } from './partition.js';
import type { AnyWorker } from './worker.js';

const loopTurnsMs = 200;

/** The monotonic clock that all threads of a process share; performance.now() starts anew in each. */
export function sharedNowMs(): bigint {
  return process.hrtime.bigint() / 1_000_000n;
}

/** The memory of a process: when its loop last turned, and the id of the job whose handler it is in (length, then bytes). */
export interface Pulse {
  turned: SharedArrayBuffer;
  inside: SharedArrayBuffer;
}

/** Longer ids are compared as far as this. */
export const insideBytes = 255;
const dot = 0x2e;
const zero = 0x30;

/** What the thread needs to know of a session. */
export interface Watched {
  key: number;
  target: RedisTarget;
  keys: Record<string, string>;
  session: string;
  leaseMs: number;
  worker: string;
  timeoutMs: number;
  attempts: number;
  backoff: object;
  /** Shared monotonic ms at which the earliest running job is out of time; 0 when there is none. */
  deadline: SharedArrayBuffer;
  /** 1 when the worker drains, as it was told to, and nothing runs. */
  drained: SharedArrayBuffer;
}

export type ToThread = { watch: Watched } | { forget: number };
export type FromThread = { ready: true } | { lost: number; why: string } | { wished: number; drain: boolean };

/** What is heard of a session. */
export interface Listener {
  onLost(why: string): void;
  /** An operator wishes that nothing more be claimed, or no longer. Told when it changes. */
  onDrain(wished: boolean): void;
}

export interface Beat {
  /** The thread is there. A session is opened after that: starting a thread on a busy machine may take a whole lease. */
  readonly ready: Promise<void>;
  /** The session has been opened: renew it. */
  begin(): void;
  setDeadline(atMs: number): void;
  setDrained(isDrained: boolean): void;
  stop(): void;
}

export class Heartbeat {
  static #shared: Heartbeat | undefined;
  readonly #thread: Thread;
  readonly #turned = new BigInt64Array(new SharedArrayBuffer(8));
  readonly #inside = new Uint8Array(new SharedArrayBuffer(1 + insideBytes));
  #insideName = '';
  readonly #listeners = new Map<number, Listener>();
  readonly #ticker: NodeJS.Timeout;
  readonly #ready: Promise<void>;
  #keys = 0;

  static shared(): Heartbeat {
    Heartbeat.#shared ??= new Heartbeat();
    return Heartbeat.#shared;
  }

  /** The one of this process, as long as it has sessions. */
  static get current(): Heartbeat | undefined {
    return Heartbeat.#shared;
  }

  private constructor() {
    Atomics.store(this.#turned, 0, sharedNowMs());
    this.#ticker = setInterval(() => this.#turn(), loopTurnsMs);
    this.#ticker.unref();
    this.#thread = new Thread(new URL('./heartbeatThread.js', import.meta.url), {
      workerData: { turned: this.#turned.buffer, inside: this.#inside.buffer } satisfies Pulse,
    });
    this.#thread.unref();
    this.#ready = new Promise((resolve, reject) => {
      this.#thread.once('message', () => resolve());
      this.#thread.once('error', reject);
    });
    this.#ready.catch(() => {});
    this.#thread.on('message', (message: FromThread) => {
      if ('lost' in message) this.#listeners.get(message.lost)?.onLost(message.why);
      if ('wished' in message) this.#listeners.get(message.wished)?.onDrain(message.drain);
    });
    this.#thread.on('error', (error) => {
      // Without a heartbeat every lease runs out: better to begin again than to work unseen.
      Heartbeat.#shared = undefined;
      const why = `the heartbeat thread failed: ${error.message}`;
      for (const listener of [...this.#listeners.values()]) listener.onLost(why);
    });
  }

  watch(worker: AnyWorker, partition: Partition, session: string, listener: Listener): Beat {
    const key = this.#keys++;
    const deadline = new BigInt64Array(new SharedArrayBuffer(8));
    const drained = new Int32Array(new SharedArrayBuffer(4));
    const { defaults } = worker.queue;
    this.#listeners.set(key, listener);
    const watch: Watched = {
      key,
      target: partition.link.target,
      keys: { ...partition.keys },
      session,
      leaseMs: worker.leaseMs,
      worker: worker.name,
      timeoutMs: defaults.timeoutMs,
      attempts: defaults.attempts,
      backoff: typeof defaults.backoff === 'function' ? defaultBackoff : defaults.backoff,
      deadline: deadline.buffer,
      drained: drained.buffer,
    };
    return {
      ready: this.#ready,
      begin: () => this.#send({ watch }),
      setDeadline: (atMs) => {
        Atomics.store(
          deadline,
          0,
          atMs === 0 ? 0n : sharedNowMs() + BigInt(Math.round(atMs - performance.now())),
        );
      },
      setDrained: (isDrained) => void Atomics.store(drained, 0, isDrained ? 1 : 0),
      stop: () => {
        this.#listeners.delete(key);
        this.#send({ forget: key });
        if (this.#listeners.size === 0) this.#end();
      },
    };
  }

  /** The handler of a job is called now: if it does not return, this is who is to blame. */
  enter(name: string, place: number | undefined): void {
    const inside = this.#inside;
    // Neighbours in a bale differ in their places only.
    if (name !== this.#insideName) {
      this.#insideName = name;
      const most = Math.min(name.length, insideBytes);
      for (let i = 0; i < most; i++) inside[i + 1] = name.charCodeAt(i);
    }
    let length = Math.min(name.length, insideBytes);
    if (place !== undefined) {
      inside[++length] = dot;
      if (place > 9) inside[++length] = zero + Math.floor(place / 10);
      inside[++length] = zero + (place % 10);
    }
    inside[0] = length;
  }

  leave(): void {
    this.#inside[0] = 0;
  }

  #send(message: ToThread): void {
    this.#thread.postMessage(message);
  }

  #turn(): void {
    Atomics.store(this.#turned, 0, sharedNowMs());
  }

  /** The last session is gone; the next one starts a new thread. */
  #end(): void {
    if (Heartbeat.#shared === this) Heartbeat.#shared = undefined;
    clearInterval(this.#ticker);
    void this.#thread.terminate();
  }
}
