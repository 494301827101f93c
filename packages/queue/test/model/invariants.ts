// What must hold whatever the scripts do inside. The ledger hears what goes in and what is answered, as a bystander would who
// sees all calls, and looks at the raw keys after each of them. It knows nothing of the model: what the model has misunderstood
// is noticed here, and a script without its guards is caught here too (sabotage.test.ts).
//
//   - An accepted job is in exactly one place, with the bytes it came with, until somebody ends it; then it is in none.
//   - Only whoever holds a job, with the token of its claim, ends it or gives it back; nobody ends it twice.
//   - A claim reaches its worker: nothing is held by a live session that never heard of it.
//   - Tokens only grow. Jobs of one priority come in the order in which they were added. Limits hold.
//   - A session that is being rescued can change nothing, and none is rescued when nobody could renew.
import { show, unpack } from './foretold.js';
import { flag, jobsUnder } from './state.js';
import { family, pairsOf } from './snapshot.js';
import type { Entry, Snapshot } from './snapshot.js';

const headerBytes = 8;
const tombstone = 0xff;
const metaFields = ['#', '#0', '#1'];

export class Violation extends Error {}

interface Account {
  payload: string;
  /** Jobs that were added plainly come in this order. */
  order: number;
  priority: number;
}

interface Hold {
  session: string;
  token: string;
}

export class Ledger {
  #accounts = new Map<string, Account>();
  #order = 0;
  /** As the last look at the keys showed it. */
  #holds = new Map<string, Hold>();
  #heard = new Set<string>();
  #unanswered = new Map<string, number>();
  #underRescue = new Set<string>();
  #token = 0;
  /** Per priority, the order of the last job that was claimed for the first time. */
  #lastOrder = new Map<number, number>();
  #graceUntilMs = 0;
  #deadlines = new Map<string, number>();
  /** Foreign messages that nobody has taken. */
  #messages: string[] = [];
  claims = 0;

  // ── What is heard ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** `order`: the job was added without anything that changes its turn. */
  accepted(id: string, payload: string, priority: number, ordered: boolean): void {
    if (this.#accounts.has(id)) object(`${id} was accepted a second time while it was there`);
    this.#accounts.set(id, { payload, priority, order: ordered ? ++this.#order : 0 });
  }

  pushed(messages: string[]): void {
    this.#messages.push(...messages);
  }

  /** These messages became jobs; each does so once, and in turn. */
  taken(messages: string[]): void {
    for (const message of messages) {
      if (this.#messages.shift() !== message) object(`${message} was not the next message of the inbox`);
    }
  }

  edited(id: string, payload: string): void {
    const account = this.#accounts.get(id);
    if (!account) return object(`${id} was edited, but it is not there`);
    account.payload = payload;
  }

  /** The job has ended. `token`: its worker said so, and was believed. */
  ended(id: string, by?: Hold): void {
    if (by) this.#mayAct(id, by);
    if (!this.#accounts.delete(id)) object(`${id} ended twice, or never was`);
    this.#holds.delete(id);
  }

  /** The job is no longer held. */
  returned(id: string, by: Hold): void {
    this.#mayAct(id, by);
    this.#holds.delete(id);
    const account = this.#accounts.get(id);
    if (account) account.order = 0;
  }

  /** An operator put the job somewhere else; its turn has changed. */
  moved(id: string): void {
    const account = this.#accounts.get(id);
    if (account) account.order = 0;
  }

  called(session: string): void {
    this.#unanswered.set(session, (this.#unanswered.get(session) ?? 0) + 1);
  }

  answered(session: string, calls = 1): void {
    this.#unanswered.set(session, (this.#unanswered.get(session) ?? 0) - calls);
  }

  /** A claim was answered for the first time. */
  claimed(session: string, token: string, ids: string[]): void {
    if (this.#underRescue.has(session)) object(`${session} claimed although it is being rescued`);
    if (Number(token) <= this.#token) object(`token ${token} comes after ${this.#token}`);
    this.#token = Number(token);
    this.claims += ids.length;
    for (const id of ids) {
      const account = this.#accounts.get(id);
      if (!account) {
        object(`${id} was claimed, but it is not there`);
        continue;
      }
      if (this.#holds.has(id)) object(`${id} was claimed although ${this.#holds.get(id)!.session} holds it`);
      if (account.order === 0) continue;
      if (account.order < (this.#lastOrder.get(account.priority) ?? 0)) {
        object(`${id} was claimed after jobs of its priority that were added later`);
      }
      this.#lastOrder.set(account.priority, account.order);
      account.order = 0;
    }
  }

  /** The worker knows of these claims now. */
  heard(session: string, token: string, ids: string[]): void {
    for (const id of ids) this.#heard.add(`${session} ${id} ${token}`);
  }

  /** A late call began a session of this name anew. */
  opened(session: string): void {
    this.#underRescue.delete(session);
  }

  /** A worker said something about a job, and was believed. */
  noted(id: string, by: Hold): void {
    this.#mayAct(id, by);
  }

  renewed(session: string, atMs: number): void {
    if (this.#underRescue.has(session)) object(`${session} renewed although it is being rescued`);
    const lateMs = atMs - this.#deadlines.get(session)!;
    if (lateMs > 0 && atMs > this.#graceUntilMs) object(`${session} renewed ${lateMs} ms too late`);
  }

  rescued(session: string, ids: string[], atMs: number): void {
    if (atMs < this.#graceUntilMs && !this.#underRescue.has(session)) {
      object(`${session} was rescued, but nobody could renew for a whole lease`);
    }
    this.#underRescue.add(session);
    for (const id of ids) {
      if (this.#holds.get(id)?.session !== session)
        object(`${id} was rescued from ${session}, which did not hold it`);
      this.#holds.delete(id);
      this.moved(id);
    }
  }

  /** Nobody could renew until now: all sessions are owed a fresh lease. */
  outage(graceUntilMs: number): void {
    this.#graceUntilMs = graceUntilMs;
  }

  #mayAct(id: string, { session, token }: Hold): void {
    if (this.#underRescue.has(session)) object(`${session} acted on ${id} although it is being rescued`);
    const hold = this.#holds.get(id);
    if (hold?.session !== session || hold.token !== token) {
      object(`${session} acted on ${id} with token ${token}, but the hold is ${show(hold)}`);
    }
  }

  // ── What is seen ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** `claim`: what was given just now, and the limits that it had to respect. */
  look(snapshot: Snapshot, claim?: { given: string[]; maxActive?: number; keyMaxActive?: number }): void {
    const places = placesOf(snapshot);
    const jobs = jobsOf(snapshot);
    this.#checkPlaces(places, jobs);
    this.#checkHolds(snapshot);
    const messages = snapshot.get('inbox')?.items ?? [];
    if (messages.join() !== this.#messages.join()) object(`the inbox has ${messages.length} messages`);
    const running = this.#checkGroups(snapshot, jobs);
    if (!claim || claim.given.length === 0) return;
    if (this.#holds.size > (claim.maxActive ?? Infinity)) {
      object(`${this.#holds.size} jobs run, ${claim.maxActive} may`);
    }
    for (const id of claim.given) {
      const group = groupOf(jobs.get(id)!);
      if (group !== '' && running.get(group)! > (claim.keyMaxActive ?? Infinity)) {
        object(`${running.get(group)} jobs of group ${group} run, ${claim.keyMaxActive} may`);
      }
    }
  }

  #checkPlaces(places: Map<string, string[]>, jobs: Map<string, string>): void {
    let tombstones = 0;
    for (const [id, packed] of jobs) {
      const where = places.get(id) ?? [];
      if (where.length !== 1) object(`${id} is in ${where.length} places: ${where.join(', ')}`);
      if (packed.charCodeAt(0) === tombstone) {
        tombstones++;
        if (!where[0]!.startsWith('wait:')) object(`the tombstone of ${id} is in ${where[0]}`);
        if (this.#accounts.has(id)) object(`${id} is a tombstone, but nobody ended it`);
        continue;
      }
      const account = this.#accounts.get(id);
      if (!account) object(`${id} is there, but it has ended or was never accepted`);
      else if (payloadOf(packed) !== account.payload) object(`the payload of ${id} is not what was accepted`);
    }
    for (const [id, where] of places)
      if (!jobs.has(id)) object(`${id} is in ${where.join(', ')}, but has no job`);
    if (this.#accounts.size > jobs.size - tombstones) {
      object(`lost: ${[...this.#accounts.keys()].filter((id) => !jobs.has(id)).join(', ')}`);
    }
  }

  #checkHolds(snapshot: Snapshot): void {
    const token = Number(pairsOf(snapshot.get('cfg')).get('token') ?? 0);
    if (token < this.#token) object(`the last token went back from ${this.#token} to ${token}`);
    this.#token = token;
    const live = pairsOf(snapshot.get('sessions'));
    const marked = pairsOf(snapshot.get('rescuing'));
    this.#deadlines = new Map([...live].map(([session, score]) => [session, Number(score)]));
    this.#holds.clear();
    for (const [session, entry] of family(snapshot, 'active:')) {
      if (!live.has(session) && !marked.has(session)) object(`nobody will ever find what ${session} holds`);
      for (const [id, held] of holdsIn(entry, snapshot)) {
        if (Number(held) > token) object(`${id} is held with token ${held}, beyond ${token}`);
        this.#holds.set(id, { session, token: held });
        const mayBeUnheard = (this.#unanswered.get(session) ?? 0) > 0 || !live.has(session);
        if (!mayBeUnheard && !this.#heard.has(`${session} ${id} ${held}`)) {
          object(`${session} holds ${id} and never heard of it`);
        }
      }
    }
  }

  /** How many jobs of each group run. */
  #checkGroups(snapshot: Snapshot, jobs: Map<string, string>): Map<string, number> {
    const running = new Map<string, number>();
    for (const id of this.#holds.keys()) {
      const group = groupOf(jobs.get(id)!);
      if (group !== '') running.set(group, (running.get(group) ?? 0) + 1);
    }
    const counted = pairsOf(snapshot.get('group-active'));
    for (const group of new Set([...running.keys(), ...counted.keys()])) {
      const real = running.get(group) ?? 0;
      if (real !== Number(counted.get(group) ?? 0)) {
        object(`${real} jobs of group ${group} run, ${counted.get(group) ?? 0} are counted`);
      }
    }
    const listed = [...(snapshot.get('fresh')?.items ?? []), ...(snapshot.get('ring')?.items ?? [])].sort();
    const ready = [...pairsOf(snapshot.get('groups'))]
      .filter(([, state]) => state === 'ready')
      .map(([name]) => name);
    if (listed.join() !== ready.sort().join())
      object(`ready groups are ${ready.join()}, but ${listed.join()} are served`);
    return running;
  }
}

/** Nothing when it belongs to no group. */
function groupOf(packed: string): string {
  return packed.charCodeAt(0) & flag.grouped ? (JSON.parse(optionsText(packed)) as { g: string }).g : '';
}

/** Id → token of what a session holds, in fields of their own or in a sheaf. */
function holdsIn(entry: Entry | undefined, snapshot: Snapshot): Map<string, string> {
  const holds = new Map<string, string>();
  for (const [field, value] of pairsOf(entry)) {
    const sheaf = /^\d+:(\d+)=(\d+);(.*)$/s.exec(value);
    if (!metaFields.includes(field)) holds.set(field, value);
    else if (sheaf && field !== '#') {
      const names = unpack(Buffer.from(sheaf[3]!, 'latin1')) as string[];
      const ids = names.flatMap((name) => idsUnder(name, snapshot));
      if (ids.length !== Number(sheaf[2])) object(`a sheaf of ${sheaf[2]} jobs has ${ids.length}`);
      for (const id of ids) holds.set(id, sheaf[1]!);
    }
  }
  return holds;
}

/** Every job as it would be alone: bales are opened, what is left of loose ones is left out. */
function jobsOf(snapshot: Snapshot): Map<string, string> {
  const jobs = new Map<string, string>();
  for (const [name, packed] of pairsOf(snapshot.get('jobs'))) {
    if (packed.charCodeAt(0) === flag.loose) continue;
    for (const job of jobsUnder(name, packed)) jobs.set(job.id, job.packed);
  }
  return jobs;
}

/** The jobs that a name in a list or in a sheaf stands for. */
function idsUnder(name: string, snapshot: Snapshot): string[] {
  if (!name.startsWith('=')) return [name];
  const packed = pairsOf(snapshot.get('jobs')).get(name);
  if (packed === undefined) {
    object(`there is no bale ${name}`);
    return [];
  }
  if (packed.charCodeAt(0) === flag.loose) return unpack(Buffer.from(packed.slice(8), 'latin1')) as string[];
  const jobs = jobsUnder(name, packed);
  if (jobs.length !== packed.charCodeAt(1))
    object(`${name} has ${jobs.length} jobs, not ${packed.charCodeAt(1)}`);
  return jobs.map(({ id }) => id);
}

/** Where each id stands: it must be one place only. */
function placesOf(snapshot: Snapshot): Map<string, string[]> {
  const places = new Map<string, string[]>();
  const put = (id: string, key: string) => {
    const where = places.get(id);
    if (where) where.push(key);
    else places.set(id, [key]);
  };
  for (const [key, { kind, items }] of snapshot) {
    if (!/^(wait:\d|delayed|suspects|blocked|dead|active:.*|group:.*)$/s.test(key)) continue;
    if (key.startsWith('active:')) for (const id of holdsIn(snapshot.get(key), snapshot).keys()) put(id, key);
    else
      for (let i = 0; i < items.length; i += kind === 'list' ? 1 : 2)
        for (const id of key.startsWith('wait:') ? idsUnder(items[i]!, snapshot) : [items[i]!]) put(id, key);
  }
  return places;
}

function optionsText(packed: string): string {
  if (!(packed.charCodeAt(0) & flag.options)) return '{}';
  const length = packed.charCodeAt(headerBytes) * 256 + packed.charCodeAt(headerBytes + 1);
  return packed.slice(headerBytes + 2, headerBytes + 2 + length);
}

function payloadOf(packed: string): string {
  if (!(packed.charCodeAt(0) & flag.options)) return packed.slice(headerBytes);
  return packed.slice(headerBytes + 2 + optionsText(packed).length);
}

function object(why: string): void {
  throw new Violation(why);
}
