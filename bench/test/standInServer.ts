/*
 * The smallest server that speaks enough of Sluice's HTTP for the benchmark's client: it keeps a file in memory until it
 * is whole and puts it in S3 with one call. It can be told to misbehave, because a client that does not notice would
 * measure nonsense.
 */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { S3 } from '@aws-sdk/client-s3';
import { s3Config } from '../src/uploads/s3Server.js';
import type { StartUploadServer, UploadServer } from '../src/uploads/side.js';

export interface Misbehaviour {
  /** Says 429 to so many requests first. */
  busyTimes?: number;
  /** Stores a byte that nobody sent. */
  spoils?: boolean;
  /** Says that all is well and stores nothing. */
  forgets?: boolean;
}

interface Kept {
  name: string;
  size: number;
  chunks: Map<number, Buffer>;
  sha256?: string;
}

interface Answer {
  status: number;
  body: object | Buffer;
}

export function standIn(misbehaviour: Misbehaviour = {}): StartUploadServer {
  return async ({ s3: access }): Promise<UploadServer> => {
    const s3 = new S3(s3Config(access));
    const kept = new Map<string, Kept>();
    let busyTimes = misbehaviour.busyTimes ?? 0;

    const store = async (name: string, bytes: Buffer): Promise<string> => {
      if (misbehaviour.spoils) bytes = Buffer.concat([bytes.subarray(1), Buffer.of(bytes[0]! ^ 1)]);
      if (!misbehaviour.forgets) await s3.putObject({ Bucket: access.bucket, Key: name, Body: bytes });
      return createHash('sha256').update(bytes).digest('hex');
    };

    const answer = async (request: IncomingMessage, body: Buffer): Promise<Answer> => {
      if (busyTimes-- > 0) return { status: 429, body: { error: { code: 'BUDGET_EXHAUSTED' } } };
      const [, kind, id = '', , n] = request.url!.split('/').slice(1);
      const digest = request.headers['content-digest'] ?? request.headers['repr-digest'];
      const agrees = digest === `sha-256=:${createHash('sha256').update(body).digest('base64')}:`;
      if (request.method === 'PUT' && !agrees)
        return { status: 400, body: { error: { code: 'DIGEST_MISMATCH' } } };
      const name = request.url!.split('/').at(-1)!;
      switch (`${request.method} ${kind}`) {
        case 'PUT files':
          return { status: 201, body: { sha256: await store(name, body) } };
        case 'GET files': {
          const { Body } = await s3.getObject({ Bucket: access.bucket, Key: name });
          return { status: 200, body: Buffer.from(await Body!.transformToByteArray()) };
        }
        case 'POST uploads': {
          const { path, size } = JSON.parse(body.toString()) as { path: string; size: number };
          kept.set(path, { name: path, size, chunks: new Map() });
          return { status: 201, body: { id: path, state: 'PENDING' } };
        }
        case 'PUT uploads': {
          kept.get(id)!.chunks.set(Number(n), body);
          return { status: 200, body: { ack: 'buffered' } };
        }
        case 'GET uploads': {
          const upload = kept.get(id)!;
          const inOrder = [...upload.chunks].sort(([a], [b]) => a - b).map(([, chunk]) => chunk);
          upload.sha256 ??= await store(upload.name, Buffer.concat(inOrder));
          return { status: 200, body: { id, state: 'COMPLETED', result: { sha256: upload.sha256 } } };
        }
        default:
          return { status: 404, body: {} };
      }
    };

    const server = createServer((request, response) => {
      const reply = async (): Promise<void> => {
        const pieces: Buffer[] = [];
        for await (const piece of request) pieces.push(piece as Buffer);
        const { status, body } = await answer(request, Buffer.concat(pieces));
        response.writeHead(status, { 'Retry-After': '0' });
        response.end(Buffer.isBuffer(body) ? body : JSON.stringify(body));
      };
      reply().catch((error: unknown) => response.writeHead(500).end(String(error)));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return {
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      pid: process.pid,
      redisPids: [process.pid],
      async stop() {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
        s3.destroy();
      },
    };
  };
}
