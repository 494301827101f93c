// What the interface needs of the Fastify server that it runs in: limits that fit, and refusals in our form also where Fastify
// answers before any plugin is asked.
import type { FastifyError, FastifyReply, FastifyRequest, FastifyServerOptions } from 'fastify';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { answerFor, identified, restErrors, type Answer } from './errors.js';
import { markAnswer, requestIdOf } from './everyAnswer.js';

/** Of JSON; files are not limited here. */
const largestJsonBytes = 1_048_576;
/** Fastify's own limit is far below that of a path. */
const longestParameter = 8_192;

export const serverOptions = {
  genReqId: requestIdOf,
  bodyLimit: largestJsonBytes,
  routerOptions: { maxParamLength: longestParameter },
  ajv: { customOptions: { coerceTypes: false, removeAdditional: false, allErrors: false } },
  /** An address that cannot be decoded. */
  frameworkErrors: (error: FastifyError, request: unknown, reply: unknown) => {
    const reason = 'the address is not properly percent-encoded, or one of its names is too long';
    const asked = request as FastifyRequest;
    const answer =
      error.statusCode === 400 || error.statusCode === 414
        ? answerFor(restErrors.REQUEST_INVALID({ reason }))
        : answerFor(error);
    const { status, body } = identified(answer, asked.id);
    void markAnswer(asked, reply as FastifyReply)
      .code(status)
      .send(body);
  },
  /** What is no HTTP, or too much of it. */
  clientErrorHandler: answerSocket,
} satisfies FastifyServerOptions;

function answerSocket(error: Error & { code?: string }, socket: Socket): void {
  if (error.code !== 'ECONNRESET' && socket.writable) {
    // Nobody could read an id of theirs: it gets one of ours.
    const id = requestIdOf({ headers: {} });
    const { status, body } = identified(answerBroken(error.code), id);
    const text = JSON.stringify(body);
    const head = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(text)}`,
      `X-Request-Id: ${id}`,
      'Connection: close',
    ];
    socket.write(`${head.join('\r\n')}\r\n\r\n${text}`);
  }
  socket.destroy();
}

function answerBroken(code: string | undefined): Answer {
  const [status, reason] =
    code === 'HPE_HEADER_OVERFLOW'
      ? [431, 'its headers are too long; at most 16 KiB are read']
      : code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? [408, 'its headers came too slowly']
        : [400, 'it is not HTTP/1.1'];
  return { ...answerFor(restErrors.REQUEST_INVALID({ reason })), status };
}
