/*
 * The client of `tus`: the fewest requests that tus 1.0 allows. A file that goes whole is created and filled by one POST
 * (the extension creation-with-upload, which both @tus/server and its S3 store support); one that goes in chunks takes a
 * POST and then a PATCH for each chunk, one after the other, because the offset of the next is known only from the reply.
 *
 * The S3 store completes its multipart upload before it answers the last request, so that reply stops the clock.
 */
import { S3 } from '@aws-sdk/client-s3';
import { expectStatus, HttpCaller, type Reply } from './httpCaller.js';
import { s3Config, type S3Access } from './s3Server.js';
import type { Sender } from './sender.js';
import type { Chunks } from './sizes.js';
import { chunksOf, type UploadFile } from './tape.js';
import { TUS_PATH } from './tusSettings.js';
import { errors } from '../errors.js';

const TUS_HEADERS = { 'Tus-Resumable': '1.0.0' };
const WITH_BYTES = { ...TUS_HEADERS, 'Content-Type': 'application/offset+octet-stream' };

export class TusSender implements Sender {
  readonly #http: HttpCaller;
  readonly #s3: S3;
  readonly #keys = new Map<string, string>();

  constructor(
    url: string,
    private readonly access: S3Access,
  ) {
    this.#http = new HttpCaller(url);
    this.#s3 = new S3(s3Config(access));
  }

  /** tus knows no digests. */
  prepare(): void {
    this.#keys.clear();
  }

  async sendWhole(file: UploadFile): Promise<void> {
    const { bytes } = file;
    const headers = { ...WITH_BYTES, 'Upload-Length': bytes.length };
    const reply = await this.#http.call({ method: 'POST', path: TUS_PATH, headers, body: bytes });
    expectStatus(reply, [201], `creating ${file.name}`);
    this.#remember(file, reply);
    expectOffset(reply, bytes.length, file);
  }

  async sendInChunks(file: UploadFile, { chunkBytes }: Chunks): Promise<void> {
    const headers = { ...TUS_HEADERS, 'Upload-Length': file.bytes.length };
    const created = await this.#http.call({ method: 'POST', path: TUS_PATH, headers });
    expectStatus(created, [201], `creating ${file.name}`);
    const path = this.#remember(file, created);
    let offset = 0;
    for (const chunk of chunksOf(file.bytes, chunkBytes)) {
      const at = { ...WITH_BYTES, 'Upload-Offset': offset };
      const reply = await this.#http.call({ method: 'PATCH', path, headers: at, body: chunk });
      expectStatus(reply, [204], `${file.name} at ${offset}`);
      offset += chunk.length;
      expectOffset(reply, offset, file);
    }
  }

  async readBack(file: UploadFile): Promise<Buffer> {
    const { Body } = await this.#s3.getObject({
      Bucket: this.access.bucket,
      Key: this.#keys.get(file.name),
    });
    return Buffer.from(await Body!.transformToByteArray());
  }

  /** The last segment of an upload's address is the key of its object. */
  #remember(file: UploadFile, { headers }: Reply): string {
    const { location = '' } = headers;
    this.#keys.set(file.name, location.slice(location.lastIndexOf('/') + 1));
    return location;
  }
}

function expectOffset(reply: Reply, wanted: number, { name }: UploadFile): void {
  const got = Number(reply.headers['upload-offset']);
  if (got === wanted) return;
  throw errors.REPLY_UNEXPECTED({ what: name, status: reply.status, text: `offset ${got}, not ${wanted}` });
}
