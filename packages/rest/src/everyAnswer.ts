// What every answer has, whoever gives it: the id of its request, and what keeps a browser from doing with it what nobody meant.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

const sane = /^[A-Za-z0-9._:/+=@-]{1,128}$/;

/** The id that the client or a proxy gave the request, if it is one that can stand in a header and in a log; else a new one. */
export function requestIdOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && sane.test(given) ? given : randomUUID();
}

/** An answer is data: nothing in it is run, framed or guessed at. A page says otherwise itself. */
export const answerHeaders = {
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
};

/** For the routes that are declared in this scope. */
export function markAnswers(server: FastifyInstance): void {
  server.addHook('onRequest', (request, reply, done) => {
    markAnswer(request, reply);
    done();
  });
}

export function markAnswer({ id }: FastifyRequest, reply: FastifyReply): FastifyReply {
  return reply.headers(answerHeaders).header('X-Request-Id', id);
}
