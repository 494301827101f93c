/*
 * The client of `sluice`: a whole file is one PUT; a file in chunks is begun, its chunks are sent a few at a time, and
 * it is done when the server says that it is completed.
 *
 * Every body goes with its SHA-256, and the digest of the finished file has to come back from the server: what is
 * measured includes the check from end to end. The digests are known before the clock starts, as they are to a client
 * that computed them while it read the file.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expectStatus, HttpCaller, type Call, type Reply } from './httpCaller.js';
import type { Sender } from './sender.js';
import type { Chunks } from './sizes.js';
import { chunksOf, type Tape, type UploadFile } from './tape.js';
import { errors } from '../errors.js';
import { inLanes } from '../waiting.js';

const DRIVE = 'main';
/** Asked to come back later, a client comes back this often before it gives up. */
const TRIES_AT_MOST = 200;
const BUSY = [429, 503];
const COMPLETION_POLL_MS = 2;
const ENDED_BADLY = ['FAILED', 'CANCELLED', 'EXPIRED'];

interface UploadView {
  id: string;
  state: string;
  result?: { sha256?: string } | null;
  error?: { code: string; message: string } | null;
}

export class SluiceSender implements Sender {
  readonly #http: HttpCaller;

  constructor(
    url: string,
    private readonly tape: Tape,
  ) {
    this.#http = new HttpCaller(url);
  }

  prepare(files: readonly UploadFile[], chunks: Chunks | undefined): void {
    for (const { bytes } of files) {
      this.tape.digest(bytes);
      for (const chunk of chunksOf(bytes, chunks?.chunkBytes ?? bytes.length)) this.tape.digest(chunk);
    }
  }

  async sendWhole(file: UploadFile): Promise<void> {
    const { bytes } = file;
    const headers = { 'Content-Type': 'application/octet-stream', 'Repr-Digest': this.#digestField(bytes) };
    const reply = await this.#patiently({ method: 'PUT', path: pathOf(file), headers, body: bytes });
    expectStatus(reply, [200, 201], `uploading ${file.name}`);
    this.#expectDigest(file, (readJson(reply) as { sha256?: string }).sha256);
  }

  async sendInChunks(file: UploadFile, { chunkBytes, chunksAtOnce }: Chunks): Promise<void> {
    const { bytes, name } = file;
    const sha256 = this.tape.digest(bytes).toString('hex');
    const asked = { drive: DRIVE, path: name, size: bytes.length, chunkSize: chunkBytes, sha256 };
    const body = Buffer.from(JSON.stringify(asked));
    const headers = { 'Content-Type': 'application/json' };
    const begun = await this.#patiently({ method: 'POST', path: '/v1/uploads', headers, body });
    expectStatus(begun, [201], `beginning ${name}`);
    const { id } = readJson(begun) as UploadView;
    const chunks = chunksOf(bytes, chunkBytes);
    await inLanes(chunksAtOnce, chunks.length, (n) => this.#sendChunk(id, n, chunks[n]!));
    this.#expectDigest(file, await this.#completed(id));
  }

  async readBack(file: UploadFile): Promise<Buffer> {
    const reply = await this.#http.call({ method: 'GET', path: pathOf(file) });
    expectStatus(reply, [200], `reading ${file.name}`);
    return reply.body;
  }

  async #sendChunk(id: string, n: number, body: Buffer): Promise<void> {
    const headers = { 'Content-Digest': this.#digestField(body) };
    const path = `/v1/uploads/${id}/chunks/${n}`;
    expectStatus(await this.#patiently({ method: 'PUT', path, headers, body }), [200], `chunk ${n} of ${id}`);
  }

  /** The digest of the finished file, once it is finished. */
  async #completed(id: string): Promise<string | undefined> {
    for (;;) {
      const reply = await this.#http.call({ method: 'GET', path: `/v1/uploads/${id}` });
      expectStatus(reply, [200], `the state of ${id}`);
      const { state, result, error } = readJson(reply) as UploadView;
      if (state === 'COMPLETED') return result?.sha256;
      if (ENDED_BADLY.includes(state)) {
        throw errors.REPLY_UNEXPECTED({ what: id, status: 200, text: `${state} ${error?.message ?? ''}` });
      }
      await sleep(COMPLETION_POLL_MS);
    }
  }

  /** A server that has no room says when to come back; that is its way to stay within its budget, not a failure. */
  async #patiently(call: Call): Promise<Reply> {
    for (let tries = 1; ; tries++) {
      const reply = await this.#http.call(call);
      if (!BUSY.includes(reply.status) || tries === TRIES_AT_MOST) return reply;
      await sleep(Number(reply.headers['retry-after'] ?? 1) * 1_000);
    }
  }

  #digestField(bytes: Buffer): string {
    return `sha-256=:${this.tape.digest(bytes).toString('base64')}:`;
  }

  #expectDigest({ name, bytes }: UploadFile, stored = 'nothing'): void {
    const sent = this.tape.digest(bytes).toString('hex');
    if (stored !== sent) throw errors.CONTENT_DIFFERS({ name, sent, stored });
  }
}

function pathOf({ name }: UploadFile): string {
  return `/v1/files/${DRIVE}/${name}`;
}

function readJson({ body }: Reply): unknown {
  return JSON.parse(body.toString());
}
