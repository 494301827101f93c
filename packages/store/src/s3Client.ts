// The AWS SDK's client, set up for moving bytes rather than for convenience.
//
// - No checksum is computed by the SDK, neither CRC-32 of requests nor validation of replies: ours is CRC-64/NVME, known before
//   or sent behind the bytes. Bodies are sent as UNSIGNED-PAYLOAD, because hashing them with SHA-256 for the signature would cost as
//   much again and says nothing that the CRC (and TLS) does not.
// - No retries and no time-outs by the SDK but that for connecting: `s3.ts` repeats within a budget, and watches for silence.
//   The SDK's socket time-out would also strike a slow reader of a download.
// - Many sockets, because a slow client holds one for as long as it takes.
// - No `Expect: 100-continue`, which costs a round trip per part.
import { type GetObjectCommandInput, S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Socket } from 'node:net';
import { CRC64_HEADER, SourceBody } from './body.js';

export interface S3Credentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
}

export interface S3ClientOptions {
  region: string;
  /** Of a server that is not AWS: `https://minio.example:9000`. */
  endpoint?: string;
  /** Without them the SDK looks where it always does: environment, profile, instance role. */
  credentials?: S3Credentials | (() => Promise<S3Credentials>);
  /** The bucket in the path instead of the host name; on by default when there is an endpoint. */
  forcePathStyle?: boolean;
  maxSockets?: number;
  connectTimeoutMs?: number;
}

const DEFAULT_MAX_SOCKETS = 1_024;
const DEFAULT_CONNECT_TIMEOUT_MS = 5_000;
/** Servers close idle connections after some seconds; one that we close first is never one that the server has just closed. */
const IDLE_SOCKET_MS = 4_000;
const MAX_FREE_SOCKETS = 256;

export function makeS3Client(options: S3ClientOptions): S3Client {
  const sockets = {
    keepAlive: true,
    maxSockets: options.maxSockets ?? DEFAULT_MAX_SOCKETS,
    maxFreeSockets: MAX_FREE_SOCKETS,
    noDelay: true,
    timeout: 0,
  };
  const config: S3ClientConfig = {
    region: options.region,
    forcePathStyle: options.forcePathStyle ?? options.endpoint !== undefined,
    maxAttempts: 1,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    expectContinueHeader: false,
    logger: silentLogger,
    requestHandler: new NodeHttpHandler({
      httpAgent: closingIdle(new HttpAgent(sockets)),
      httpsAgent: closingIdle(new HttpsAgent(sockets)),
      connectionTimeout: options.connectTimeoutMs ?? DEFAULT_CONNECT_TIMEOUT_MS,
      socketTimeout: 0,
      requestTimeout: 0,
    }),
    ...(options.endpoint !== undefined && { endpoint: options.endpoint }),
    ...(options.credentials !== undefined && { credentials: options.credentials }),
  };
  const client = new S3Client(config);
  addHeaders(client);
  return client;
}

/** A socket that waits for its next request is closed after a while (by the agent, on its 'timeout'). */
function closingIdle<Kind extends HttpAgent>(agent: Kind): Kind {
  const keep = agent.keepSocketAlive.bind(agent) as (socket: Socket) => boolean;
  agent.keepSocketAlive = (socket) => {
    const kept = keep(socket as Socket);
    if (kept) (socket as Socket).setTimeout(IDLE_SOCKET_MS);
    return kept;
  };
  return agent;
}

/** Headers that the SDK would set otherwise, or only together with work of its own. */
function addHeaders(client: S3Client): void {
  client.middlewareStack.add(
    (next, context) => async (args) => {
      const { headers } = args.request as { headers: Record<string, string> };
      const command = context['commandName'];
      if (command === 'PutObjectCommand' || command === 'UploadPartCommand') {
        Object.assign(headers, bodyHeaders((args.input as { Body?: unknown }).Body));
      }
      // The whole object's checksum among the reply's headers, without the SDK reading the body to compare.
      const whole =
        command === 'GetObjectCommand' && (args.input as GetObjectCommandInput).Range === undefined;
      if (whole) headers['x-amz-checksum-mode'] = 'ENABLED';
      return next(args);
    },
    { step: 'build', name: 'sluiceHeaders' },
  );
}

function bodyHeaders(body: unknown): Record<string, string> {
  if (!(body instanceof SourceBody) || !body.framed) return { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' };
  return {
    'x-amz-content-sha256': 'STREAMING-UNSIGNED-PAYLOAD-TRAILER',
    'x-amz-trailer': CRC64_HEADER,
    'x-amz-decoded-content-length': String(body.length),
    'content-encoding': 'aws-chunked',
  };
}

const silent = (): void => {};
/** The SDK would write to the console otherwise; what went wrong is in our errors. */
const silentLogger = { trace: silent, debug: silent, info: silent, warn: silent, error: silent };
