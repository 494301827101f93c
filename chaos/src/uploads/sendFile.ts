// How a good client sends one file: it begins, sends, asks what is missing, sends that, and does so until the upload has an end. What
// was not answered is done again; every request is safe to repeat. An upload that the service gave up is begun anew.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Journal } from '../evidence.js';
import type { Random } from '@sluice/testbed/random';
import type { ClientLine } from './evidence.js';
import type { Answer, Http } from './http.js';
import { sha256Of } from './shapes.js';
import type { File } from './shapes.js';

const shortPauseMs = 80;
const longPauseMs = 300;
const piecesAtOnce = 3;
/** Longer than what makes a service move the bytes of an idle upload, shorter than what makes it expire. */
const restMs = 3_500;
const drive = 'main';

export interface Sending {
  file: File;
  bytes: Buffer;
  http: Http;
  log: Journal<ClientLine>;
  random: Random;
  /** There is no more time. */
  signal: AbortSignal;
}

interface View {
  id: string;
  state: string;
  size: number | null;
  missing: [number, number | null][];
  error: { code: string } | null;
  result: { nodeId: string; size: number; sha256: string; version: number } | null;
}

export async function sendFile(sending: Sending): Promise<void> {
  const { file, log, signal } = sending;
  for (let number = 1; ; number++) {
    const isOver = await (file.shape.by === 'whole' ? sendWhole : sendPieces)(
      sending,
      `${file.key}.${number}`,
    );
    if (isOver) return;
    if (signal.aborted)
      return log.write({ e: 'stuck', at: Date.now(), key: file.key, why: 'ended each time' });
    await sleep(shortPauseMs);
  }
}

/** One request, repeated under its idempotency key until it is answered. False when the key has had a bad end. */
async function sendWhole({ file, bytes, http, log, random, signal }: Sending, key: string): Promise<boolean> {
  const { shape, path } = file;
  while (!signal.aborted) {
    const { status, code, body } = await http.ask({
      what: 'whole',
      method: 'PUT',
      path: `/v1/files/${drive}/${path}`,
      headers: {
        'content-type': 'application/octet-stream',
        'idempotency-key': key,
        ...(shape.declares && { 'repr-digest': digestOf(bytes) }),
      },
      bytes: shape.knownSize ? bytes : piped(bytes),
    });
    if (status === 200 || status === 201) {
      const { nodeId, size, sha256, version } = body as unknown as NonNullable<View['result']>;
      log.write({ e: 'completed', at: Date.now(), key: file.key, nodeId, size, sha256, version });
      await readAgain({ file, bytes, http, log, random });
      return true;
    }
    // The upload behind the key expired or failed: another key is another upload.
    if (code === 'UPLOAD_ENDED' || code === 'UPLOAD_FAILED' || code === 'UPLOAD_NOT_FOUND') return false;
    await pauseAfter(status);
  }
  log.write({ e: 'stuck', at: Date.now(), key: file.key, why: 'no whole file was taken' });
  return true;
}

/** False when the upload ended without having been asked to. */
async function sendPieces(sending: Sending, key: string): Promise<boolean> {
  const { file, bytes, http, log, signal } = sending;
  const { shape } = file;
  const begun = await begin(sending, key);
  if (begun === undefined) return signal.aborted;
  const { id } = begun;
  log.write({ e: 'begun', at: Date.now(), key: file.key, upload: id });
  let isHalfway = false;
  for (;;) {
    if (signal.aborted) {
      log.write({ e: 'stuck', at: Date.now(), key: file.key, upload: id, why: 'still open' });
      return true;
    }
    const { status, body, code } = await http.ask({
      what: 'status',
      method: 'GET',
      path: `/v1/uploads/${id}`,
    });
    if (code === 'UPLOAD_NOT_FOUND') return false;
    if (status !== 200) {
      await pauseAfter(status);
      continue;
    }
    const view = body as unknown as View;
    if (isEnd(view.state)) return finish(sending, view);
    if (view.size === null && view.missing[0]?.[0] === bytes.length) {
      const json = { size: bytes.length };
      await http.ask({ what: 'complete', method: 'POST', path: `/v1/uploads/${id}/complete`, json });
    }
    const pieces = piecesOf(file, view.missing);
    if (pieces.length === 0) {
      await sleep(shortPauseMs);
      continue;
    }
    const half = isHalfway || pieces.length === 1 ? pieces : pieces.slice(0, Math.ceil(pieces.length / 2));
    await sendAll(sending, id, half);
    if (isHalfway || shape.halfway === 'goes on') continue;
    isHalfway = true;
    if (shape.halfway === 'rests') await sleep(restMs);
    if (shape.halfway === 'walks away') {
      log.write({ e: 'walked', at: Date.now(), key: file.key, upload: id });
      return true;
    }
    if (shape.halfway === 'cancels')
      await http.ask({ what: 'cancel', method: 'DELETE', path: `/v1/uploads/${id}` });
  }
}

async function begin(
  { file, bytes, http, signal }: Sending,
  key: string,
): Promise<{ id: string } | undefined> {
  const { shape, path } = file;
  while (!signal.aborted) {
    const { status, code, body } = await http.ask({
      what: 'begin',
      method: 'POST',
      path: '/v1/uploads',
      headers: { 'idempotency-key': key },
      json: {
        drive,
        path,
        ...(shape.knownSize && { size: file.size }),
        ...(shape.by === 'chunks' && shape.fixedChunks && { chunkSize: shape.pieceBytes }),
        ...(shape.declares && { sha256: sha256Of(bytes) }),
      },
    });
    if (status === 201) return body as { id: string };
    if (code === 'UPLOAD_ENDED') return undefined;
    await pauseAfter(status);
  }
  return undefined;
}

interface Piece {
  number: number;
  from: number;
  to: number;
}

/** What is missing, in the pieces that the client cuts its file into. Chunks are sent whole. */
function piecesOf({ size, shape }: File, missing: View['missing']): Piece[] {
  const pieces: Piece[] = [];
  for (const [first, last] of missing) {
    const end = Math.min(size, (last ?? size - 1) + 1);
    for (let number = Math.floor(first / shape.pieceBytes); number * shape.pieceBytes < end; number++) {
      const from = number * shape.pieceBytes;
      const to = Math.min(size, from + shape.pieceBytes);
      const isKnown = shape.by === 'chunks' && pieces.at(-1)?.number === number;
      if (isKnown) continue;
      if (shape.by === 'chunks') pieces.push({ number, from, to });
      else pieces.push({ number, from: Math.max(from, first), to: Math.min(to, end) });
    }
  }
  return pieces;
}

async function sendAll(sending: Sending, id: string, pieces: Piece[]): Promise<void> {
  const { file, random, log } = sending;
  const { shape } = file;
  for (let at = 0; at < pieces.length; at += piecesAtOnce) {
    const now = random.shuffled(pieces.slice(at, at + piecesAtOnce));
    const again = shape.repeats && random.chance(0.5) ? [now[0]!] : [];
    const answers = await Promise.all([...now, ...again].map((piece) => sendPiece(sending, id, piece)));
    const refused = answers.find(({ status }) => status !== 200);
    if (refused) return pauseAfter(refused.status);
    if (shape.forges && random.chance(0.5)) {
      log.write({ e: 'forged', at: Date.now(), key: file.key, upload: id });
      await sendPiece(sending, id, now[0]!, true);
    }
  }
}

function sendPiece(
  { file, bytes, http, random }: Sending,
  id: string,
  { number, from, to }: Piece,
  forged = false,
): Promise<Answer> {
  const { shape, size } = file;
  const piece = forged
    ? Buffer.from(bytes.subarray(from, to).map((byte) => byte ^ 1))
    : bytes.subarray(from, to);
  const digest = shape.digests && { 'content-digest': digestOf(piece) };
  if (shape.by === 'chunks') {
    // An unknown length ends with the last chunk, or is said afterwards; a short chunk must be the last one.
    const isLast = !shape.knownSize && to === size && (shape.fixedChunks || random.chance(0.7));
    const path = `/v1/uploads/${id}/chunks/${number}${isLast ? '?last=true' : ''}`;
    const what = forged ? 'forgery' : isLast ? 'last chunk' : 'chunk';
    return http.ask({ what, method: 'PUT', path, headers: { ...digest }, bytes: piece });
  }
  return http.ask({
    what: 'range',
    method: 'PUT',
    path: `/v1/uploads/${id}/bytes`,
    headers: { 'content-range': `bytes ${from}-${to - 1}/${shape.knownSize ? size : '*'}`, ...digest },
    bytes: piece,
  });
}

async function finish(sending: Sending, { id, state, error, result }: View): Promise<boolean> {
  const { file, log } = sending;
  const at = Date.now();
  if (state === 'COMPLETED') {
    const { nodeId, size, sha256, version } = result!;
    log.write({ e: 'completed', at, key: file.key, upload: id, nodeId, size, sha256, version });
    await readAgain(sending);
    return true;
  }
  log.write({ e: 'ended', at, key: file.key, upload: id, state, ...(error && { code: error.code }) });
  return state === 'CANCELLED' || file.shape.forges;
}

/** A path that is nobody else's must have these bytes from now on. */
async function readAgain({ file, bytes, http, log, random }: Omit<Sending, 'signal'>): Promise<void> {
  if (file.path.startsWith('shared/') || !random.chance(0.3)) return;
  const read = await http.download(`/v1/files/${drive}/${file.path}`);
  if (read && !read.equals(bytes))
    log.write({ e: 'misread', at: Date.now(), key: file.key, sha256: sha256Of(read) });
}

function isEnd(state: string): boolean {
  return ['COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED'].includes(state);
}

async function pauseAfter(status: number | undefined): Promise<void> {
  await sleep(status === undefined || status === 429 || status === 503 ? longPauseMs : shortPauseMs);
}

function digestOf(bytes: Uint8Array): string {
  return `sha-256=:${Buffer.from(sha256Of(bytes), 'hex').toString('base64')}:`;
}

async function* piped(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += 100_000) yield bytes.subarray(at, at + 100_000);
}
