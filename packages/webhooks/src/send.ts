// One POST to one webhook: to the addresses that were checked and no others, without redirects, within a time, reading little of the
// answer. The status is all that counts.
import { request as requestHttp, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIPv6, type LookupFunction } from 'node:net';
import { webhookErrors } from './errors.js';
import type { Target } from './target.js';

const mostAnswerBytes = 65_536;
const mostHeaderBytes = 16_384;

export interface SendOptions {
  headers: Record<string, string>;
  body: string;
  /** For everything: connecting, sending, and the head of the answer. */
  timeoutMs: number;
  /** Also trusts certificates of this authority. */
  ca?: string;
  signal?: AbortSignal;
}

export interface Answer {
  status: number;
  retryAfter: string | undefined;
}

/** Resolves with any answer; throws DELIVERY_FAILED if there is none. */
export async function send({ url, addresses }: Target, options: SendOptions): Promise<Answer> {
  const { headers, body, timeoutMs, ca, signal } = options;
  const deadline = AbortSignal.timeout(timeoutMs);
  try {
    const response = await open(url, body, {
      method: 'POST',
      headers: { ...headers, 'Content-Length': String(Buffer.byteLength(body)) },
      // A connection of its own: one that is kept might lead to an address of another time.
      agent: false,
      lookup: pinned(addresses),
      maxHeaderSize: mostHeaderBytes,
      signal: signal ? AbortSignal.any([deadline, signal]) : deadline,
      ...(url.protocol === 'https:' && { rejectUnauthorized: true, ...(ca !== undefined && { ca }) }),
    });
    drain(response);
    return { status: response.statusCode!, retryAfter: response.headers['retry-after'] };
  } catch (error) {
    const reason = deadline.aborted ? `no answer within ${timeoutMs} ms` : reasonOf(error);
    throw webhookErrors.DELIVERY_FAILED({ origin: url.origin, reason }, { cause: error });
  }
}

function open(url: URL, body: string, options: RequestOptions & { ca?: string }): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const start = url.protocol === 'https:' ? requestHttps : requestHttp;
    const request = start(url, options, resolve);
    request.on('error', reject);
    request.end(body);
  });
}

/** Answers with what was looked up and checked before, whatever the name means now. */
function pinned(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }));
  return (_host, options, done) => {
    if (options.all) done(null, all);
    else done(null, all[0]!.address, all[0]!.family);
  };
}

/** Lets the other side finish its answer, within reason. */
function drain(response: IncomingMessage): void {
  let bytes = 0;
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > mostAnswerBytes) response.destroy();
  });
  response.on('error', () => {});
}

function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  const { code, message } = error as NodeJS.ErrnoException;
  return code ?? message;
}
