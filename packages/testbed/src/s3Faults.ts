/**
 * An HTTP proxy in front of an S3 server, with the faults of object storage as scripted rules.
 *
 * A rule names the requests it is for (operation, key, part number), what happens to them, and how often. What happens is what
 * clients of S3 really meet: errors, silence, a connection cut before the request arrived or after it was carried out, a body
 * that ends early, a checksum that is not that of the bytes, and a success whose body says that it failed. Signatures cover the
 * Host header, so it is passed on as it came.
 */
import {
  Agent,
  createServer,
  request as sendRequest,
  type ClientRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

export type S3Operation =
  | 'AbortMultipartUpload'
  | 'CompleteMultipartUpload'
  | 'CopyObject'
  | 'CreateMultipartUpload'
  | 'DeleteObject'
  | 'GetObject'
  | 'HeadObject'
  | 'ListMultipartUploads'
  | 'ListObjects'
  | 'ListParts'
  | 'PutObject'
  | 'UploadPart'
  | 'UploadPartCopy';

/** What happens to a request. */
export type S3Fault =
  /** It never reaches the server; the client gets this status and error code. */
  | { do: 'answer'; status: number; code: string }
  /** It is passed on after this long. */
  | { do: 'delay'; ms: number }
  /** Its body is swallowed and nobody answers. */
  | { do: 'hang' }
  /** The connection is cut before the request reaches the server, or after the server carried it out. */
  | { do: 'cut'; when: 'before' | 'after' }
  /** The reply is cut after this many bytes of its body. */
  | { do: 'truncate'; afterBytes: number }
  /** The reply stops after this many bytes of its body, and the connection stays open. */
  | { do: 'stall'; afterBytes: number }
  /** These headers of the reply are replaced; `undefined` removes one. */
  | { do: 'alter'; headers: Record<string, string | undefined> }
  /** Status 200 and a body that says it failed; with `carriedOut` the server did it all the same. */
  | { do: 'error in 200'; code: string; carriedOut: boolean };

export interface S3Request {
  operation: S3Operation;
  key: string;
  partNumber?: number;
  /** Whether its headers name CRC-64/NVME. */
  hasCrc64?: boolean;
}

export interface S3FaultRule extends Partial<S3Request> {
  fault: S3Fault;
  /** How many requests it is for; 1 unless told otherwise, Infinity for all. */
  times?: number;
}

export interface S3Faults {
  readonly endpoint: string;
  /** Every request that has come, in order. */
  readonly requests: readonly S3Request[];
  count(operation: S3Operation): number;
  /** Adds a rule; the first one that fits wins. Returns how often it has been applied. */
  inject(rule: S3FaultRule): { readonly applied: number };
  /** Removes all rules. */
  heal(): void;
  stop(): Promise<void>;
}

export async function startS3Faults(targetEndpoint: string): Promise<S3Faults> {
  const proxy = new FaultyS3(new URL(targetEndpoint));
  await proxy.listen();
  return proxy;
}

interface ActiveRule {
  rule: S3FaultRule;
  left: number;
  applied: number;
}

class FaultyS3 implements S3Faults {
  readonly requests: S3Request[] = [];
  private rules: ActiveRule[] = [];
  private readonly agent = new Agent({ keepAlive: true });
  private readonly acceptor: Server = createServer((request, reply) => this.handle(request, reply));

  constructor(private readonly target: URL) {}

  async listen(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.acceptor.once('error', reject);
      this.acceptor.listen(0, '127.0.0.1', resolve);
    });
    this.acceptor.unref();
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.acceptor.address() as AddressInfo).port}`;
  }

  count(operation: S3Operation): number {
    return this.requests.filter((request) => request.operation === operation).length;
  }

  inject(rule: S3FaultRule): { readonly applied: number } {
    const active = { rule, left: rule.times ?? 1, applied: 0 };
    this.rules.push(active);
    return active;
  }

  heal(): void {
    this.rules = [];
  }

  async stop(): Promise<void> {
    this.agent.destroy();
    const closed = new Promise<void>((resolve) => {
      this.acceptor.close(() => resolve());
    });
    this.acceptor.closeAllConnections();
    await closed;
  }

  private handle(request: IncomingMessage, reply: ServerResponse): void {
    request.on('error', () => {});
    reply.on('error', () => {});
    const asked = readRequest(request);
    this.requests.push(asked);
    const fault = this.faultFor(asked);
    if (fault === undefined) return void this.pass(request, reply, copyReply);
    switch (fault.do) {
      case 'answer':
        return afterBody(request, () => answerError(reply, fault.status, fault.code));
      case 'delay':
        return void setTimeout(() => this.pass(request, reply, copyReply), fault.ms);
      case 'hang':
        return void request.resume();
      case 'cut':
        if (fault.when === 'before') return void request.socket.resetAndDestroy();
        return void this.pass(request, reply, (answer) =>
          afterBody(answer, () => request.socket.resetAndDestroy()),
        );
      case 'truncate':
        return void this.pass(request, reply, (answer) =>
          copyStart(answer, reply, fault.afterBytes, () => request.socket.destroy()),
        );
      case 'stall':
        return void this.pass(request, reply, (answer) =>
          copyStart(answer, reply, fault.afterBytes, () => {}),
        );
      case 'alter':
        return void this.pass(request, reply, (answer) => {
          Object.assign(answer.headers, fault.headers);
          copyReply(answer, reply);
        });
      case 'error in 200':
        if (!fault.carriedOut) return afterBody(request, () => answerError(reply, 200, fault.code));
        return void this.pass(request, reply, (answer) =>
          afterBody(answer, () => answerError(reply, 200, fault.code)),
        );
    }
  }

  private faultFor(asked: S3Request): S3Fault | undefined {
    const active = this.rules.find(
      ({ rule, left }) =>
        left > 0 &&
        (rule.operation ?? asked.operation) === asked.operation &&
        (rule.key ?? asked.key) === asked.key &&
        (rule.partNumber ?? asked.partNumber) === asked.partNumber &&
        (rule.hasCrc64 ?? asked.hasCrc64) === asked.hasCrc64,
    );
    if (active === undefined) return undefined;
    active.left -= 1;
    active.applied += 1;
    return active.rule.fault;
  }

  /** Sends the request to the server as it came, and its answer to `deliver`. */
  private pass(
    request: IncomingMessage,
    reply: ServerResponse,
    deliver: (answer: IncomingMessage, reply: ServerResponse) => void,
  ): ClientRequest {
    const { hostname: host, port } = this.target;
    const { method, url: path, headers } = request;
    const passed = sendRequest({ host, port, method, path, headers, agent: this.agent }, (answer) => {
      answer.on('error', () => request.socket.destroy());
      deliver(answer, reply);
    });
    passed.on('error', () => request.socket.destroy());
    // A client that hangs up in the middle of its body hangs up on the server too.
    request.on('close', () => request.complete || passed.destroy());
    request.pipe(passed);
    return passed;
  }
}

function copyReply(answer: IncomingMessage, reply: ServerResponse): void {
  writeHead(answer, reply);
  answer.pipe(reply);
  reply.on('close', () => answer.destroy());
}

/** The head and the first bytes of the body, then what happens next. */
function copyStart(
  answer: IncomingMessage,
  reply: ServerResponse,
  afterBytes: number,
  then: () => void,
): void {
  writeHead(answer, reply);
  reply.flushHeaders();
  let left = afterBytes;
  const finish = (): void => {
    answer.removeAllListeners('data').destroy();
    then();
  };
  answer.on('data', (chunk: Buffer) => {
    const part = chunk.subarray(0, left);
    left -= part.length;
    reply.write(part, () => left === 0 && finish());
  });
  if (afterBytes === 0) finish();
}

function writeHead(answer: IncomingMessage, reply: ServerResponse): void {
  const given = Object.entries(answer.headers).filter(([, value]) => value !== undefined);
  reply.writeHead(answer.statusCode!, Object.fromEntries(given));
}

/** Reads a body to its end and throws it away. */
function afterBody(message: IncomingMessage, then: () => void): void {
  message.once('end', then);
  message.resume();
}

function answerError(reply: ServerResponse, status: number, code: string): void {
  const xml = `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>injected</Message></Error>`;
  reply.writeHead(status, { 'content-type': 'application/xml', 'content-length': Buffer.byteLength(xml) });
  reply.end(xml);
}

/** Path style: `/bucket/key?query`. */
function readRequest({ method, url, headers }: IncomingMessage): S3Request {
  const [path = '', query = ''] = url!.split('?');
  const parameters = new URLSearchParams(query);
  const key = decodeURIComponent(path.replace(/^\/[^/]*\/?/, ''));
  const number = parameters.get('partNumber');
  const operation = operationOf(method!, key, parameters, 'x-amz-copy-source' in headers);
  const hasCrc64 = /crc64nvme/i.test(JSON.stringify(headers));
  return { operation, key, hasCrc64, ...(number !== null && { partNumber: Number(number) }) };
}

function operationOf(method: string, key: string, query: URLSearchParams, copies: boolean): S3Operation {
  const inUpload = query.has('uploadId');
  switch (method) {
    case 'PUT':
      if (inUpload) return copies ? 'UploadPartCopy' : 'UploadPart';
      return copies ? 'CopyObject' : 'PutObject';
    case 'POST':
      return inUpload ? 'CompleteMultipartUpload' : 'CreateMultipartUpload';
    case 'DELETE':
      return inUpload ? 'AbortMultipartUpload' : 'DeleteObject';
    case 'HEAD':
      return 'HeadObject';
    default:
      if (inUpload) return 'ListParts';
      if (query.has('uploads')) return 'ListMultipartUploads';
      return key === '' ? 'ListObjects' : 'GetObject';
  }
}
