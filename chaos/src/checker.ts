// The checker: holds what producers were told, what the outside world saw and what the books say against each other. It reads
// files of evidence only (evidence.ts): the producers' logs, the ledger of effects, the operator's and the conductor's logs, and raw
// keys. It knows nothing of what workers believe, and asks nothing of the queue.
import { readBooks } from './books.js';
import { viewBooks } from './booksView.js';
import type { BooksView } from './booksView.js';
import { files, readJournal, readProducers } from './evidence.js';
import type { FaultLine, GapLine, LedgerLine, OperatorLine, ProducerLine, SessionLine } from './evidence.js';
import { newestToken, viewLedger } from './ledgerView.js';
import type { LedgerView } from './ledgerView.js';
import { checkRecovery } from './recovery.js';
import type { Kind } from './work.js';

export interface Verdict {
  violations: string[];
  figures: Record<string, number>;
}

export interface CheckOptions {
  queue: string;
  leaseMs: number;
}

type Objector = (sentence: string) => void;

interface Known {
  producers: ProducerView;
  ledger: LedgerView;
  books: BooksView;
  operator: OperatorLine[];
}

export function check(folder: string, { queue, leaseMs }: CheckOptions): Verdict {
  const violations: string[] = [];
  const object = (sentence: string) => violations.push(sentence);
  const ledgerLines = readJournal<LedgerLine>(folder, files.ledger);
  const known: Known = {
    producers: viewProducers(readProducers(folder)),
    ledger: viewLedger(ledgerLines),
    books: viewBooks(readBooks(folder), queue),
    operator: readJournal<OperatorLine>(folder, files.operator),
  };
  const faults = readJournal<FaultLine>(folder, files.faults);
  const ends = checkEnds(known, object);
  checkOnce(known, object);
  checkCounts(known, ends, object);
  checkTokens(known, object);
  checkClaims(known, faults, object);
  checkAttempts(known, object);
  checkSchedule(known, object);
  for (const leak of known.books.leaks) object(`leak: ${leak}`);
  const recovery = checkRecovery(
    {
      leaseMs,
      faults,
      sessions: readJournal<SessionLine>(folder, files.sessions),
      gaps: readJournal<GapLine>(folder, files.gaps),
      ledger: known.ledger,
    },
    object,
  );
  const { producers, ledger } = known;
  const runs = [...ledger.jobs.values()].reduce((sum, job) => sum + job.runs.length, 0);
  const figures = {
    jobs: producers.accepted.size,
    done: ends.done.size,
    dead: ends.dead.size,
    cancelled: ends.cancelled.size,
    unknown: producers.unknown,
    unsettled: producers.unsettled.size,
    runs,
    reruns: runs - ledger.jobs.size,
    staleEffects: ledger.staleEffects,
    repeatedEffects: ledger.repeatedEffects,
    ...recovery,
  };
  return { violations, figures };
}

// ── What producers were told ────────────────────────────────────────────────────────────────────────────────────────────

interface Intent {
  key: string;
  kind: Kind;
  remembered: boolean;
  after: string[];
}

interface ProducerView {
  intents: Map<string, Intent>;
  /** Key → id, of jobs that Redis accepted as new. */
  accepted: Map<string, string>;
  /** Keys whose add was answered with another job's id, or refused: they must not exist. */
  absent: Set<string>;
  /** Calls whose outcome was not known at first. */
  unknown: number;
  /** Keys whose outcome nobody ever learned: they may exist, at most once. */
  unsettled: Set<string>;
  malformed: Map<string, { pushes: number; answered: boolean }>;
}

function viewProducers(lines: readonly ProducerLine[]): ProducerView {
  const view: ProducerView = {
    intents: new Map(),
    accepted: new Map(),
    absent: new Set(),
    unknown: 0,
    unsettled: new Set(),
    malformed: new Map(),
  };
  for (const line of lines) {
    switch (line.e) {
      case 'intent':
        view.intents.set(line.key, {
          key: line.key,
          kind: line.kind,
          remembered: line.remembered,
          after: line.after ?? [],
        });
        view.unsettled.add(line.key);
        break;
      case 'accepted':
        if (line.ours) view.accepted.set(line.key, line.id);
        else view.absent.add(line.key);
        view.unsettled.delete(line.key);
        break;
      case 'refused':
        view.absent.add(line.key);
        view.unsettled.delete(line.key);
        break;
      case 'unknown':
        view.unknown++;
        break;
      case 'malformed': {
        const before = view.malformed.get(line.text) ?? { pushes: 0, answered: false };
        view.malformed.set(line.text, {
          pushes: before.pushes + 1,
          answered: before.answered || line.answered,
        });
      }
    }
  }
  return view;
}

// ── Every accepted job ended once ───────────────────────────────────────────────────────────────────────────────────────

interface Ends {
  done: Set<string>;
  dead: Set<string>;
  cancelled: Set<string>;
}

/** Kinds that cannot fail by themselves: if they are dead, their workers died under them. */
const harmless: ReadonlySet<Kind> = new Set([
  'quick',
  'failing',
  'snoozing',
  'long',
  'slow',
  'blocking',
  'tick',
]);
const crashesThatBury = 3;

function checkEnds(known: Known, object: Objector): Ends {
  const { producers, ledger, books } = known;
  const ends: Ends = { done: new Set(), dead: new Set(), cancelled: new Set() };
  const intentOf = (id: string) => producers.intents.get(ledger.jobs.get(id)?.key ?? '');
  const ids = new Map<string, Intent | undefined>();
  for (const id of [...ledger.jobs.keys(), ...books.results.keys(), ...books.dead]) ids.set(id, intentOf(id));
  for (const [key, id] of producers.accepted) ids.set(id, producers.intents.get(key));
  const accepted = new Set(producers.accepted.values());

  for (const [id, intent] of ids) {
    const end = books.results.get(id)?.[0];
    const places = [end === 'd' && 'done', end === 'c' && 'cancelled', books.dead.has(id) && 'dead'].filter(
      Boolean,
    );
    if (books.unfinished.has(id)) places.push(`unfinished (in ${books.unfinished.get(id)})`);
    const hasEffect = ledger.applied.has(ledger.jobs.get(id)?.key ?? '');
    // A plain job that is done leaves nothing in the books; its effect tells.
    if (places.length === 0 && hasEffect && !intent?.remembered) places.push('done');
    const who = `${id} (${intent?.kind ?? ledger.jobs.get(id)?.runs[0]?.kind ?? 'unknown'})`;
    // One that only ran was lost before anybody had confirmed it: bad, but no broken promise.
    const since = accepted.has(id) ? 'accepted' : 'it ran, unconfirmed';
    if (places.length === 0) object(`${who} vanished: ${since}, and in no place of the books`);
    else if (places.length > 1) object(`${who} is in several places: ${places.join(', ')}`);
    else if (places[0] === 'done') ends.done.add(id);
    else if (places[0] === 'dead') ends.dead.add(id);
    else if (places[0] === 'cancelled') ends.cancelled.add(id);
    else object(`${who} has not ended: ${places[0]}`);
    if (ends.done.has(id) && !hasEffect) object(`${who} is done, but had no effect`);
  }
  for (const id of books.unfinished.keys())
    if (!ids.has(id)) object(`${id} has not ended, and nobody added it`);
  checkReasons(known, ends, object);
  return ends;
}

/** A job is cancelled because somebody asked for it, and dead because it or its workers failed. */
function checkReasons({ producers, ledger, books, operator }: Known, ends: Ends, object: Objector): void {
  const asked = new Set(operator.flatMap((line) => (line.e === 'cancelling' ? [line.id] : [])));
  const intents = new Map([...producers.accepted].map(([key, id]) => [id, producers.intents.get(key)]));
  const everFailed = (id: string) =>
    ends.cancelled.has(id) ||
    ends.dead.has(id) ||
    ledger.jobs.get(id)?.runs.some(({ end }) => end?.e !== 'effect');
  for (const id of ends.cancelled) {
    const after = intents.get(id)?.after ?? producers.intents.get(id)?.after ?? [];
    if (!asked.has(id) && !after.some(everFailed)) object(`${id} is cancelled, and nobody asked for it`);
  }
  for (const id of ends.dead) {
    const kind = ledger.jobs.get(id)?.runs[0]?.kind ?? intents.get(id)?.kind;
    if (kind === undefined || !harmless.has(kind)) continue;
    const crashes = (books.tries.get(id) ?? []).filter(
      (text) => (JSON.parse(text) as unknown[])[2] === 'crash',
    );
    if (crashes.length < crashesThatBury)
      object(`${id} (${kind}) is dead without a reason: ${books.tries.get(id)?.join(' ')}`);
  }
  const payloads = [...books.payloads.values()];
  for (const [text, { pushes, answered }] of producers.malformed) {
    const found = payloads.filter((payload) => payload === text).length;
    if (answered && found === 0) object(`the malformed message ${text} is not among the dead letters`);
    if (found > pushes) object(`the malformed message ${text} is there ${found} times`);
  }
}

// ── Nothing was added twice, nothing came from nowhere ──────────────────────────────────────────────────────────────────

function checkOnce({ producers, ledger }: Known, object: Objector): void {
  for (const [key, ids] of ledger.idsByKey) {
    const accepted = producers.accepted.get(key);
    const all = new Set(accepted === undefined ? ids : [...ids, accepted]);
    if (all.size > 1) object(`${key} was added as several jobs: ${[...all].join(', ')}`);
    if (producers.absent.has(key) && accepted === undefined)
      object(`${key} ran, though its add was refused as a duplicate`);
    const isTick = ledger.jobs.get([...ids][0]!)?.runs[0]?.kind === 'tick';
    if (!producers.intents.has(key) && !isTick) object(`${key} ran, and nobody meant to add it`);
  }
  for (const shared of ledger.sharedTokens) object(`one claim was given twice: ${shared}`);
}

/** The minutes counted every end when it happened: each job ended once, also those that left nothing else behind. */
function checkCounts({ books }: Known, ends: Ends, object: Objector): void {
  const { counted, replayed } = books;
  if (counted.done !== ends.done.size)
    object(`the books counted ${counted.done} jobs done; ${ends.done.size} are`);
  if (counted.cancelled !== ends.cancelled.size) {
    object(`the books counted ${counted.cancelled} jobs cancelled; ${ends.cancelled.size} are`);
  }
  // A letter leaves the dead by a replay or by being cancelled.
  const left = counted.dead - books.dead.size;
  if (left < replayed || left > replayed + ends.cancelled.size) {
    object(
      `the books counted ${counted.dead} deaths; ${books.dead.size} are dead and ${replayed} were replayed`,
    );
  }
}

// ── No stale token had effect ───────────────────────────────────────────────────────────────────────────────────────────

function checkTokens({ books, ledger }: Known, object: Objector): void {
  for (const [id, ended] of books.results) {
    const job = ledger.jobs.get(id);
    if (!ended.startsWith('dj') || !job) continue;
    const { token } = JSON.parse(ended.slice(2)) as { token: string };
    if (token !== newestToken(job))
      object(`${id} is done by token ${token}, but ${newestToken(job)} was claimed later`);
  }
  for (const id of books.dead) {
    const last = (books.tries.get(id) ?? []).at(-1);
    const token = last && /\btoken (\d+)/.exec((JSON.parse(last) as string[])[5]!)?.[1];
    const newest = newestToken(ledger.jobs.get(id));
    if (token && token !== newest) object(`${id} died of token ${token}, but ${newest} was claimed later`);
  }
}

/**
 * With the event stream on, every claim is known. While no process died or was cut off, each claimed job must have been run by
 * that very claim: one that nobody ran was given to nobody.
 */
function checkClaims({ books, ledger }: Known, faults: readonly FaultLine[], object: Objector): void {
  const harm = (line: FaultLine) =>
    (line.f === 'death' && line.how !== '0') || (line.f === 'fault' && line.name !== 'lose');
  if (faults.some(harm)) return;
  for (const { token, ids } of books.claims) {
    for (const id of ids) {
      const ran = ledger.jobs.get(id)?.runs.some((run) => run.token === token);
      if (!ran) object(`${id} was claimed with token ${token}, and nobody ran it`);
    }
  }
}

/** Every failure was counted once: attempts never exceed the failures that handlers reported, or could not report any more. */
function checkAttempts({ books, ledger }: Known, object: Objector): void {
  for (const { id, runs } of ledger.jobs.values()) {
    // A job with a short timeout that was claimed together with one that hangs is out of time before it can start.
    let failures = runs[0]!.kind === 'hanging' ? 1 : 0;
    for (const { attempt, token, end } of runs) {
      if (attempt - 1 > failures) {
        object(`${id} ran as attempt ${attempt} (token ${token}), after ${failures} failures`);
        break;
      }
      if (end === undefined || end.e === 'failed' || end.e === 'gave-up') failures++;
    }
  }
  for (const [id, tries] of books.tries) {
    if (new Set(tries).size < tries.length) object(`a failure of ${id} is in its history twice`);
  }
}

/** Between the first and the last tick that made a job, every tick made one. */
function checkSchedule({ ledger, operator }: Known, object: Objector): void {
  const schedule = operator.find((line) => line.e === 'scheduled');
  if (!schedule || !('everyMs' in schedule)) return;
  const { everyMs, name } = schedule;
  const ticks = [...ledger.jobs.values()].filter(({ runs }) => runs[0]?.kind === 'tick').map(({ id }) => id);
  const times = ticks.map((id) => Number(id.slice(name.length + 1))).sort((a, b) => a - b);
  for (let i = 1; i < times.length; i++) {
    if (times[i]! - times[i - 1]! !== everyMs)
      object(`schedule ${name}: no job for the ticks after ${times[i - 1]} until ${times[i]}`);
  }
}
