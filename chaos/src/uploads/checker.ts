// Proves from the evidence that no file was lost, mixed up or counted twice, and that nothing was left behind. It reads files only:
// what clients meant and were answered, what was broken when, and the books as they were in the end.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readJournal } from '../evidence.js';
import type { FaultLine } from '../evidence.js';
import { files, readClients } from './evidence.js';
import type { Books, ClientLine, UploadRow } from './evidence.js';

/** Statuses from 500 on that are no mistake: come back later. */
const laterStatuses = [503, 507];
/** Frames that nobody committed go by themselves within this time. */
const uncommittedMs = 120_000;
/** Keys that may stay for ever; everything else has a time to live. Queues have their own keys (docs/redis-keys.md). */
const lastingKeys = new RegExp(
  [
    String.raw`^sluice:\{uploads:0\}:(budget|attention|partitions)$`,
    String.raw`^sluice:\{(uploads|sluice\.operations|sluice\.webhooks):0\}:(cfg|ended|replays|schedules|ticks|sessions|wake|suspects)$`,
    String.raw`^sluice:\{events\}:(events|recent|cursor:cache)$`,
    String.raw`^sluice:\{alerts\}:standings$`,
    '^sluice:queues$',
  ].join('|'),
);
/** A job at which a server died again and again becomes a dead letter; what it was for is done by another one. */
const keysOfDeadJobs =
  /^sluice:\{uploads:0\}:(dead|dead-info|dead-groups|dead-titles|dead-group:.*|tries:.*|jobs)$/;

export interface Verdict {
  violations: string[];
  figures: Record<string, number>;
}

export interface Evidence {
  lines: ClientLine[];
  faults: FaultLine[];
  books: Books;
}

export function readEvidence(folder: string): Evidence {
  return {
    lines: readClients(folder),
    faults: readJournal<FaultLine>(folder, files.faults),
    books: JSON.parse(readFileSync(join(folder, files.books), 'utf8')) as Books,
  };
}

export function check(evidence: Evidence): Verdict {
  const violations = [
    ...checkAnswers(evidence),
    ...checkFiles(evidence),
    ...checkVersions(evidence),
    ...checkObjects(evidence),
    ...checkRedis(evidence),
    ...checkEvents(evidence),
  ];
  return { violations, figures: figuresOf(evidence) };
}

type LineOf<E extends ClientLine['e']> = Extract<ClientLine, { e: E }>;

function linesOf<E extends ClientLine['e']>({ lines }: Evidence, e: E): LineOf<E>[] {
  return lines.filter((line): line is LineOf<E> => line.e === e);
}

/** Which file an upload was begun for: the idempotency key without the number of the try. */
function keyOf({ idempotency_key: key }: UploadRow): string | undefined {
  return key?.replace(/\.\d+$/, '');
}

function checkAnswers(evidence: Evidence): string[] {
  const objections: string[] = [];
  const intents = new Map(linesOf(evidence, 'intent').map((line) => [line.key, line]));
  const forged = new Set(linesOf(evidence, 'forged').map(({ key }) => key));
  // A fail point that throws is a mistake that we made on purpose.
  let thrown = evidence.faults.filter((line) => line.f === 'point' && line.action === 'throw').length;
  for (const { key, what, status = 0, code, stack } of linesOf(evidence, 'answer')) {
    if (status >= 500 && !laterStatuses.includes(status) && thrown-- <= 0)
      objections.push(`${key}: ${what} was answered with ${status} ${code ?? ''}`);
    if (stack) objections.push(`${key}: the answer to ${what} shows a stack`);
    if (status === 200 && what === 'forgery') continue;
    const isChunk = what === 'chunk' || what === 'last chunk';
    if (code === 'CHUNK_CONFLICT' && isChunk && !forged.has(key))
      objections.push(`${key}: ${what} was told CHUNK_CONFLICT, though it sent the same bytes`);
    if (status >= 400 && status < 500 && !isExpected(code, intents.get(key)!.shape.forges))
      objections.push(`${key}: ${what} was refused with ${status} ${code ?? ''}`);
  }
  for (const { key, sha256 } of linesOf(evidence, 'misread'))
    objections.push(`${key}: the file was read with the SHA-256 ${sha256}, sent was another`);
  for (const { key, upload, why } of linesOf(evidence, 'stuck'))
    objections.push(
      `${key}: did not come to an end though nothing was broken any more: ${upload ?? ''} ${why}`,
    );
  return objections;
}

/** Refusals that a good client meets: come later, somebody was faster, the end was elsewhere. */
function isExpected(code: string | undefined, forges: boolean): boolean {
  const usual = [
    ...[
      'BUDGET_EXHAUSTED',
      'UPLOAD_ENDED',
      'UPLOAD_NOT_FOUND',
      'RANGE_OVERLAPS',
      'CHUNK_CONFLICT',
      'BODY_SLOW',
    ],
    ...['WINDOW_EXCEEDED', 'BODY_TRUNCATED', 'IDEMPOTENCY_IN_PROGRESS', 'UPLOAD_FAILED', 'SIZE_CONFLICT'],
    ...['LAST_CONFLICT', 'BEYOND_END', 'NODE_NOT_FOUND'],
  ];
  return code === undefined || usual.includes(code) || (forges && code === 'SHA256_MISMATCH');
}

/** What was sent is what is there, and what is not there says why. */
function checkFiles(evidence: Evidence): string[] {
  const objections: string[] = [];
  const intents = new Map(linesOf(evidence, 'intent').map((line) => [line.key, line]));
  const { uploads } = evidence.books;
  const byId = new Map(uploads.map((row) => [row.id, row]));
  const completedOf = grouped(
    uploads.filter(({ status }) => status === 'COMPLETED'),
    keyOf,
  );
  for (const row of uploads) {
    const intent = intents.get(keyOf(row) ?? '');
    if (row.status === 'OPEN') objections.push(`upload ${row.id} (${row.path}) is still open`);
    else if (row.status !== 'COMPLETED' && !row.reason)
      objections.push(`upload ${row.id} is ${row.status} without a reason`);
    if (row.status === 'COMPLETED' && !intent) objections.push(`nobody meant to send upload ${row.id}`);
    if (row.status !== 'COMPLETED' || !intent) continue;
    const { size, sha256 } = row.result!;
    if (size !== intent.size || sha256 !== intent.sha256)
      objections.push(
        `upload ${row.id} of ${intent.key} has ${size} bytes ${sha256}, sent were ${intent.size}`,
      );
  }
  for (const { key, upload, sha256, size, version, nodeId } of linesOf(evidence, 'completed')) {
    const intent = intents.get(key)!;
    const rows = completedOf.get(key) ?? [];
    if (sha256 !== intent.sha256 || size !== intent.size)
      objections.push(`${key} was told of ${size} bytes ${sha256}, and had sent others`);
    if (upload !== undefined && byId.get(upload)?.status !== 'COMPLETED')
      objections.push(
        `${key} was told that ${upload} is COMPLETED; the records say ${byId.get(upload)?.status}`,
      );
    if (!rows.some(({ result }) => result!.version === version && result!.nodeId === nodeId))
      objections.push(`${key} was told of version ${version} of ${nodeId}, which the records do not know`);
    if (rows.length > 1) objections.push(`${key} was sent once and became ${rows.length} versions`);
  }
  for (const { key, upload, state, code } of linesOf(evidence, 'ended')) {
    const { shape } = intents.get(key)!;
    if (byId.get(upload)?.status !== state)
      objections.push(
        `${key} was told that ${upload} is ${state}; the records say ${byId.get(upload)?.status}`,
      );
    if (state === 'FAILED' && !(shape.forges && code === 'SHA256_MISMATCH'))
      objections.push(`${key}: upload ${upload} failed (${code})`);
    if (state === 'CANCELLED' && shape.halfway !== 'cancels')
      objections.push(`${key}: upload ${upload} was cancelled, and nobody asked for that`);
  }
  return objections;
}

/** Each completed upload is one version of one node; versions have no gaps; the node is its newest. */
function checkVersions({ books }: Evidence): string[] {
  const objections: string[] = [];
  const completed = books.uploads.filter(({ status }) => status === 'COMPLETED');
  const nodes = books.nodes.filter(({ type }) => type === 'FILE');
  const byNode = grouped(completed, ({ result }) => result!.nodeId);
  for (const node of nodes) {
    const versions = (byNode.get(node.id) ?? []).sort((a, b) => a.result!.version - b.result!.version);
    byNode.delete(node.id);
    const isGapless = versions.every(({ result }, i) => result!.version === i + 1);
    if (!isGapless || node.version !== versions.length)
      objections.push(
        `node ${node.id} (${node.path}) has version ${node.version}, its uploads made ${versions.map(({ result }) => result!.version).join(' ')}`,
      );
    const newest = versions.at(-1);
    if (newest && (node.object_key !== newest.object_key || node.sha256 !== newest.result!.sha256))
      objections.push(`node ${node.id} (${node.path}) is not what its newest upload ${newest.id} brought`);
    if (newest && node.status !== 'ACTIVE')
      objections.push(`node ${node.id} (${node.path}) is ${node.status}`);
    if (!newest && node.status !== 'FAILED')
      objections.push(`node ${node.id} (${node.path}) is ${node.status} without an upload`);
  }
  for (const id of byNode.keys()) objections.push(`node ${id} was completed and is not there`);
  const active = nodes.filter(({ status }) => status === 'ACTIVE');
  const bytes = active.reduce((sum, { size }) => sum + Number(size), 0);
  if (books.usage.bytes !== bytes || books.usage.files !== active.length)
    objections.push(
      `the usage says ${books.usage.files} files with ${books.usage.bytes} bytes; there are ${active.length} with ${bytes}`,
    );
  return objections;
}

function checkObjects({ books }: Evidence): string[] {
  const objections: string[] = [];
  const objects = new Map(books.objects.map((object) => [object.key, object]));
  for (const { id, path, status, type, object_key: key, size, sha256 } of books.nodes) {
    if (type !== 'FILE' || status !== 'ACTIVE') continue;
    const object = objects.get(key!);
    objects.delete(key!);
    if (!object) objections.push(`node ${id} (${path}) is ACTIVE, and its object ${key} is not there`);
    else if (object.size !== Number(size) || object.sha256 !== sha256)
      objections.push(`node ${id} (${path}): its object has ${object.size} bytes ${object.sha256}`);
  }
  for (const key of objects.keys()) objections.push(`the object ${key} belongs to nobody`);
  for (const key of books.multiparts) objections.push(`a multipart upload of ${key} is left`);
  if (books.doomed > 0) objections.push(`${books.doomed} objects still wait to be deleted`);
  return objections;
}

function checkRedis({ books }: Evidence): string[] {
  const objections: string[] = [];
  const frames = books.keys.filter(({ key }) => key.includes(':{frames:'));
  const left = frames.filter(({ ttlMs }) => ttlMs < 0 || ttlMs > uncommittedMs);
  for (const [upload, list] of grouped(left, ({ key }) => /\{frames:([^}]+)\}/.exec(key)![1]!))
    objections.push(`${list.length} frames of ${upload} are left`);
  for (const { key, ttlMs } of books.keys)
    if (ttlMs < 0 && !lastingKeys.test(key) && !keysOfDeadJobs.test(key) && !key.includes(':{frames:'))
      objections.push(`the key ${key} stays for ever`);
  const { used = '0', queued = '0' } = books.budget;
  if (used !== '0') objections.push(`the budget says that ${used} bytes are used`);
  if (queued !== '0') objections.push(`the budget says that ${queued} chunks are queued`);
  for (const id of books.attention) objections.push(`somebody should still look at upload ${id}`);
  if (books.jobs > books.dead) objections.push(`${books.jobs - books.dead} jobs are left`);
  return objections;
}

/** Each end of an upload was published, each version once and in order; duplicates have the same id. */
function checkEvents({ books }: Evidence): string[] {
  const objections: string[] = [];
  const first = new Map<string, number>();
  books.events.forEach(({ id }, at) => first.has(id) || first.set(id, at));
  const expected = new Set<string>();
  const expect = (id: string): void => {
    expected.add(id);
    if (!first.has(id)) objections.push(`the event ${id} was not published`);
  };
  const versions = new Map<string, [version: number, at: number][]>();
  for (const { id, status, result, idempotency_key: key } of books.uploads) {
    // An upload that was buried before it began has said nothing.
    if (key === null && status === 'EXPIRED') continue;
    expect(`${id}:initiated`);
    if (status !== 'COMPLETED') {
      expect(`${id}:failed`);
      continue;
    }
    expect(`${id}:completed`);
    const event = `${result!.nodeId}:${result!.version}:${result!.version === 1 ? 'created' : 'updated'}`;
    expect(event);
    const list = versions.get(result!.nodeId) ?? [];
    versions.set(result!.nodeId, [...list, [result!.version, first.get(event) ?? -1]]);
  }
  for (const { id } of books.drives) expect(`${id}:created`);
  // A folder that was made on the way to a file is told once.
  for (const { id, type } of books.nodes) if (type === 'FOLDER') expect(`${id}:made`);
  for (const id of first.keys()) if (!expected.has(id)) objections.push(`the event ${id} has no reason`);
  for (const [node, list] of versions) {
    const inOrder = list.sort(([a], [b]) => a - b).every(([, at], i) => i === 0 || at > list[i - 1]![1]);
    if (!inOrder) objections.push(`the versions of ${node} were published in another order`);
  }
  if (books.outbox > 0) objections.push(`${books.outbox} events wait to be published`);
  return objections;
}

function figuresOf(evidence: Evidence): Record<string, number> {
  const { books, faults } = evidence;
  const ends = grouped(books.uploads, ({ status }) => status);
  const answers = linesOf(evidence, 'answer');
  const points = new Set(faults.flatMap((line) => (line.f === 'point' ? [line.point] : [])));
  const bytes = (ends.get('COMPLETED') ?? []).reduce((sum, { result }) => sum + result!.size, 0);
  const servers = new Set(
    faults.flatMap((line) => (line.f === 'birth' && line.role === 'server' ? [line.pid] : [])),
  );
  const deaths = faults.flatMap((line) => (line.f === 'death' && servers.has(line.pid) ? [line.how] : []));
  return {
    files: linesOf(evidence, 'intent').length,
    completed: ends.get('COMPLETED')?.length ?? 0,
    mebibytes: Math.round(bytes / 1_048_576),
    cancelled: ends.get('CANCELLED')?.length ?? 0,
    expired: ends.get('EXPIRED')?.length ?? 0,
    failed: ends.get('FAILED')?.length ?? 0,
    answers: answers.length,
    silent: answers.filter(({ status }) => status === undefined).length,
    later: answers.filter(({ status }) => status === 429 || status === 503).length,
    conflicts: answers.filter(({ code }) => code === 'CHUNK_CONFLICT').length,
    deadJobs: books.dead,
    events: books.events.length,
    deaths: deaths.length,
    kills: deaths.filter((how) => how === 'SIGKILL').length,
    points: points.size,
  };
}

function grouped<T, K>(list: Iterable<T>, keyFor: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of list) {
    const key = keyFor(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}
