/*
 * The client of `direct`: the AWS SDK straight to S3, with `Upload` of @aws-sdk/lib-storage for files of more than one
 * part and PutObject for the rest. It is what somebody would write who needs neither resuming nor a server between.
 *
 * The settings were tried against each other (`tuning.ts`; the table is in the README). Parts of 32 MiB cost the SDK the
 * least. Its CRC32 stays on: without it the S3 server computes a checksum of its own, which costs the machine more.
 */
import { Readable } from 'node:stream';
import { S3 } from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { s3Config, type S3Access } from './s3Server.js';
import type { Sender } from './sender.js';
import type { Chunks } from './sizes.js';
import { chunksOf, type UploadFile } from './tape.js';

export interface DirectSettings {
  partBytes: number;
  partsAtOnce: number;
  checksums: 'WHEN_SUPPORTED' | 'WHEN_REQUIRED';
}

export const DIRECT_SETTINGS: DirectSettings = {
  partBytes: 32 * 2 ** 20,
  partsAtOnce: 4,
  checksums: 'WHEN_SUPPORTED',
};

export class DirectSender implements Sender {
  readonly #s3: S3;

  constructor(
    private readonly access: S3Access,
    private readonly settings = DIRECT_SETTINGS,
  ) {
    this.#s3 = new S3({ ...s3Config(access), requestChecksumCalculation: settings.checksums });
  }

  /** The SDK computes what it sends beside the bytes. */
  prepare(): void {}

  async sendWhole(file: UploadFile): Promise<void> {
    if (file.bytes.length > this.settings.partBytes) return this.#upload(file, file.bytes);
    await this.#s3.putObject({ Bucket: this.access.bucket, Key: file.name, Body: file.bytes });
  }

  /** S3 takes no parts below 5 MiB, so chunks arrive as a stream, and the SDK gathers parts from it. */
  async sendInChunks(file: UploadFile, { chunkBytes }: Chunks): Promise<void> {
    await this.#upload(file, Readable.from(chunksOf(file.bytes, chunkBytes), { objectMode: false }));
  }

  async readBack(file: UploadFile): Promise<Buffer> {
    const { Body } = await this.#s3.getObject({ Bucket: this.access.bucket, Key: file.name });
    return Buffer.from(await Body!.transformToByteArray());
  }

  async #upload(file: UploadFile, body: Buffer | Readable): Promise<void> {
    const { partBytes: partSize, partsAtOnce: queueSize } = this.settings;
    const params = { Bucket: this.access.bucket, Key: file.name, Body: body };
    await new Upload({ client: this.#s3, params, partSize, queueSize }).done();
  }
}
