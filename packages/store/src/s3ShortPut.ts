// The short way of a small object to S3. What the SDK does around a request (endpoint rules, schemas, a dozen layers of middleware)
// costs more than half a millisecond, as much as everything else that is done for a small file together. The answers are the
// same for every object of a bucket; so the first put goes through the SDK, and what it made of it is the pattern for those that
// follow: the same host, the same signer, the same connections.
//
// A refusal forgets the pattern, and the next put goes through the SDK again: it corrects its clock, for one, from what the
// server said. Buckets that need more than a plain signature (directory buckets, access points) never leave the SDK.
import type { S3Client } from '@aws-sdk/client-s3';

export interface ShortReply {
  ETag?: string;
  ChecksumCRC64NVME?: string;
}

interface Request {
  protocol: string;
  hostname: string;
  port?: number;
  method: string;
  path: string;
  query: Record<string, string>;
  headers: Record<string, string>;
  body: Uint8Array;
}

interface Signer {
  sign(request: Request, options: { signingDate: Date }): Promise<Request>;
}

/** What all puts into one bucket have in common. */
interface Way {
  protocol: string;
  hostname: string;
  port?: number;
  /** Before the key: the bucket, where it is part of the path. */
  root: string;
  signer: Promise<Signer>;
}

interface Scheme {
  name: string;
  signingName?: string;
}

interface Answer {
  statusCode: number;
  headers: Record<string, string>;
  body: NodeJS.ReadableStream;
}

const MAX_REFUSAL_CHARACTERS = 16_384;

export class ShortPut {
  readonly #client: S3Client;
  #way: Way | undefined;

  constructor(client: S3Client) {
    this.#client = client;
    client.middlewareStack.add(
      (next, context) => (args) => {
        if (context['commandName'] === 'PutObjectCommand' && this.#way === undefined) {
          const { Key } = args.input as { Key: string };
          this.#way = this.#learn(args.request as Request, Key, schemeOf(context));
        }
        return next(args);
      },
      { step: 'build', priority: 'low', name: 'sluiceShortPut' },
    );
  }

  /** Whether the way is known. */
  get isKnown(): boolean {
    return this.#way !== undefined;
  }

  async put(
    key: string,
    body: Uint8Array,
    headers: Record<string, string>,
    abortSignal: AbortSignal,
  ): Promise<ShortReply> {
    const { signer, root, ...to } = this.#way!;
    const { config } = this.#client;
    const unsigned: Request = {
      ...to,
      method: 'PUT',
      path: root + encodeKey(key),
      query: {},
      headers: {
        ...headers,
        host: to.port === undefined ? to.hostname : `${to.hostname}:${to.port}`,
        'content-length': String(body.byteLength),
        'x-amz-content-sha256': 'UNSIGNED-PAYLOAD',
      },
      body,
    };
    const signingDate = new Date(Date.now() + config.systemClockOffset);
    const request = await (await signer).sign(unsigned, { signingDate });
    const { response } = (await config.requestHandler.handle(request as never, { abortSignal })) as {
      response: Answer;
    };
    if (response.statusCode !== 200) {
      this.#way = undefined;
      throw await refusalOf(response);
    }
    response.body.on('error', () => {});
    response.body.resume();
    const { etag, 'x-amz-checksum-crc64nvme': crc64 } = response.headers;
    return { ...(etag !== undefined && { ETag: etag }), ...(crc64 && { ChecksumCRC64NVME: crc64 }) };
  }

  #learn(request: Request, key: string, scheme: Scheme | undefined): Way | undefined {
    const { protocol, hostname, port, path } = request;
    const encoded = encodeKey(key);
    const isPlain = scheme?.name === 'sigv4' && scheme.signingName === 's3' && path.endsWith(`/${encoded}`);
    if (!isPlain) return undefined;
    return {
      protocol,
      hostname,
      ...(port !== undefined && { port }),
      root: path.slice(0, path.length - encoded.length),
      signer: this.#client.config.signer(scheme as never) as unknown as Promise<Signer>,
    };
  }
}

/** How the SDK decided to sign. */
function schemeOf(context: object): Scheme | undefined {
  const { endpointV2 } = context as { endpointV2?: { properties?: { authSchemes?: Scheme[] } } };
  return endpointV2?.properties?.authSchemes?.[0];
}

/** As the SDK writes a key into a path, which is also how it is signed. */
function encodeKey(key: string): string {
  return key.split('/').map(encodeSegment).join('/');
}

function encodeSegment(segment: string): string {
  return encodeURIComponent(segment).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** In the shape of the SDK's own errors. */
async function refusalOf({ statusCode, headers, body }: Answer): Promise<Error> {
  let text = '';
  for await (const bytes of body) if (text.length < MAX_REFUSAL_CHARACTERS) text += String(bytes);
  const error = new Error(/<Message>([^<]*)</.exec(text)?.[1] ?? 'UnknownError');
  error.name = /<Code>([^<]*)</.exec(text)?.[1] ?? 'UnknownError';
  const requestId = headers['x-amz-request-id'];
  return Object.assign(error, { $metadata: { httpStatusCode: statusCode, ...(requestId && { requestId }) } });
}
