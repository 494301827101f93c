// Those who use the queue in a test: workers that know what they hold and which of their calls is still unanswered, and
// producers with their lanes. They behave as the real ones do (claimer.ts, producer.ts), only slower and at random.
import assert from 'node:assert/strict';
import { readClaim, word } from './calls.js';
import type { Calls, Hearing } from './calls.js';
import type { Ack, ClaimCall } from './claiming.js';
import type { Model, NewItem } from './model.js';
import { flag } from './state.js';
import type { ModelJob } from './state.js';

/** Late copies of calls are taken from the last ones. */
const callsRemembered = 40;
const lanesPerProducer = 2;
const producerCount = 2;

interface Held {
  token: string;
  /** The worker ends it with an acknowledgement, because it leaves nothing behind. */
  plain: boolean;
}

interface WorkerLane {
  name: string;
  seq: number;
  /** The call that was not answered yet; it is repeated until it is. */
  pending: { call: ClaimCall; priority: number } | undefined;
  /** Its last claim, if Redis keeps that tied together. */
  sheaf: { token: string; ids: string[] } | undefined;
}

export class Worker {
  readonly name: string;
  readonly lanes: WorkerLane[] = ['#0', '#1'].map((name) => ({
    ...{ name, seq: 0, pending: undefined, sheaf: undefined },
  }));
  readonly held = new Map<string, Held>();
  acks: Ack[] = [];
  alone = false;
  /** It knows of work, or has not looked yet: it will look again without being woken. */
  hungry = true;
  /** The list that the last look allowed to take from. */
  plainList = -1;

  constructor(name: string) {
    this.name = name;
  }

  get isIdle(): boolean {
    return this.held.size === 0 && this.lanes.every(({ pending }) => !pending);
  }
}

interface ProducerLane {
  name: string;
  seq: number;
}

export class Producer {
  readonly name: string;
  lanes: ProducerLane[];
  #made = 0;

  constructor(name: string) {
    this.name = name;
    this.lanes = Array.from({ length: lanesPerProducer }, () => this.newLane());
  }

  newLane(): ProducerLane {
    return { name: String(this.#made++), seq: 0 };
  }
}

export class World {
  readonly calls: Calls;
  readonly workers = new Map<string, Worker>();
  readonly producers: Producer[];
  /** Calls that may arrive once more, long after. */
  echoes: { of: string; send: () => Promise<unknown> }[] = [];
  #names = 0;
  #delays = 0;

  constructor(calls: Calls) {
    this.calls = calls;
    this.producers = Array.from({ length: producerCount }, (_, i) => new Producer(`p${i}`));
  }

  get model(): Model {
    return this.calls.model!;
  }

  /** A name that nobody else has. */
  name(kind: string): string {
    return `${kind}${(this.#names++).toString(36)}`;
  }

  /**
   * A delay that no test lives to see. Each is different by more than a test takes, so that the order of due times does not
   * depend on how fast the test runs.
   */
  delayMs(): number {
    this.#delays = (this.#delays + 61) % 1_009;
    return 1e9 + this.#delays * 1e6;
  }

  /**
   * Sends a call, copies of it at once (its reply was lost), and perhaps another one much later. Copies change nothing, so one
   * look at the keys, after the last of them, is enough.
   */
  async send(of: string, send: () => Promise<unknown>, copies = 0): Promise<unknown> {
    this.echoes.push({ of, send });
    if (this.echoes.length > callsRemembered) this.echoes.shift();
    this.calls.looks = copies === 0;
    const reply = await send();
    for (let i = 1; i <= copies; i++) {
      this.calls.looks = i === copies;
      await send();
    }
    return reply;
  }

  async openWorker(draining = false): Promise<Worker> {
    const worker = new Worker(this.name('s'));
    // A copy that is older than the whole life of its session would begin it anew; nothing on the way lasts that long.
    let isNew = true;
    await this.send('open', async () => {
      if (isNew || this.model.sessions.has(worker.name)) await this.calls.open(worker.name, draining);
      isNew = false;
    });
    this.workers.set(worker.name, worker);
    return worker;
  }

  /** One call of a lane: a new one, or the unanswered one again. With a priority it goes the short way. */
  async claim(
    worker: Worker,
    laneIndex: number,
    want: number,
    priority: number,
    acks: Ack[],
    hearing: Hearing,
    how: { tie: boolean; pretends: boolean } = { tie: false, pretends: false },
  ): Promise<string> {
    const lane = worker.lanes[laneIndex]!;
    const first = lane.pending === undefined;
    if (!lane.pending) {
      lane.seq++;
      const { name: session, isIdle: idle } = worker;
      const whole = this.#endedSheaf(worker, lane, acks, how.pretends);
      const named = acks.filter((ack) => !whole?.includes(ack));
      const asked = worker.alone ? 0 : want;
      const call = {
        session,
        lane: lane.name,
        seq: lane.seq,
        want: asked,
        acks: named,
        whole,
        idle,
        tie: how.tie,
      };
      lane.pending = { call, priority };
      this.calls.ledger.called(worker.name);
    }
    const { call } = lane.pending;
    let reply = await this.#claimOrTake(call, lane.pending.priority, hearing);
    if (first) {
      const short = lane.pending.priority;
      this.echoes.push({ of: 'claim', send: () => this.#claimOrTake(call, short, 'echo') });
    }
    while (word(reply) === 'LOOK' || word(reply) === 'SPLIT') {
      if (word(reply) === 'SPLIT') {
        const { call: split } = lane.pending;
        lane.pending.call = { ...split, acks: [...split.whole!, ...split.acks], whole: undefined };
      }
      lane.pending.priority = -1;
      reply = await this.#claimOrTake(lane.pending.call, -1, hearing);
    }
    if (hearing !== 'heard') return word(reply);
    lane.pending = undefined;
    this.calls.ledger.answered(worker.name);
    if (word(reply) === 'LEASE_LOST') this.workers.delete(worker.name);
    else this.#receive(worker, lane, reply);
    return word(reply);
  }

  #claimOrTake(call: ClaimCall, priority: number, hearing: Hearing): Promise<unknown> {
    return priority >= 0 ? this.calls.take(call, priority, hearing) : this.calls.claim(call, hearing);
  }

  /** The acknowledgements that need no names, because they are all that was claimed last; or a pretence of that. */
  #endedSheaf(worker: Worker, lane: WorkerLane, acks: Ack[], pretends: boolean): Ack[] | undefined {
    const { sheaf } = lane;
    lane.sheaf = undefined;
    const ended = sheaf && acks.filter(({ token }) => token === sheaf.token);
    if (sheaf && ended!.length === sheaf.ids.length) return ended;
    const isTied = this.model.live(worker.name)?.lanes.get(lane.name)?.tied;
    return pretends && !isTied ? [] : undefined;
  }

  #receive(worker: Worker, lane: WorkerLane, reply: unknown): void {
    assert.notEqual(word(reply), 'STALE', 'a lane that goes forward is never out of date');
    const { token, given, flags, special, cancelled, plainList } = readClaim(reply);
    for (const id of cancelled) this.forget(worker, id);
    for (const id of special) {
      // Somebody waits for it, so it ends with a notice; unless it was cancelled since.
      const held = this.model.live(worker.name)?.active.get(id);
      if (held !== undefined) worker.held.set(id, { token: held, plain: false });
    }
    for (const { id, packed } of given) {
      const leavesSomething = flag.settles | flag.traces | flag.grouped;
      worker.held.set(id, { token, plain: (packed.charCodeAt(0) & leavesSomething) === 0 });
      const wasThereAtACrash = packed.charCodeAt(2) >= 16;
      assert.ok(
        !wasThereAtACrash || (flags & 8 && given.length === 1),
        `${id} saw a worker die and runs alone`,
      );
    }
    lane.sheaf = flags & 512 ? { token, ids: given.map(({ id }) => id) } : undefined;
    if (flags & 8 && given.length > 0) worker.alone = true;
    else if (worker.held.size === 0) worker.alone = false;
    if (plainList >= 0 || !(flags & 16)) worker.plainList = plainList;
    worker.hungry = given.length > 0 || (flags & (16 | 4)) === 16;
  }

  /** The job is no longer this worker's business. */
  forget(worker: Worker, id: string): void {
    worker.held.delete(id);
    if (worker.held.size === 0) worker.alone = false;
  }
}

/** Bytes that look like anything: text, JSON, zeros, line ends, parts of a protocol. */
export function makePayload(number: number): { payload: string; binary: boolean } {
  const kind = number % 4;
  if (kind === 0)
    return { payload: JSON.stringify({ n: number, list: [], big: '9007199254740993' }), binary: false };
  if (kind === 1) return { payload: '', binary: true };
  const length = number % 97 === 2 ? 3_000 : number % 40;
  const bytes = Array.from({ length }, (_, i) => (number * 31 + i * (kind === 2 ? 0 : 73)) % 256);
  return { payload: String.fromCharCode(...bytes), binary: true };
}

export function makeJob(id: string, number: number, priority: number, options = '', flags = 0): ModelJob {
  const { payload, binary } = makePayload(number);
  const own = (binary ? flag.binary : 0) | (options === '' ? 0 : flag.options);
  const created = String.fromCharCode(0, (number >> 8) & 0xff, 0xff, number & 0xff, 7);
  return { id, flags: flags | own, attempts: 0, crashes: 0, priority, created, options, payload };
}

/** An item of addEach.lua that asks for nothing but its job. */
export function makeItem(job: ModelJob): NewItem {
  return {
    ...{ id: job.id, job, own: false, delay: '', runAt: '', unique: '', window: '' },
    ...{ refs: [], policy: '', detail: '', print: '', title: '' },
  };
}
