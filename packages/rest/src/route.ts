// A route as this interface declares it: once for the server, once for the OpenAPI document.
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Reads } from '@sluice/reads';
import type { Records } from '@sluice/records';
import type { ObjectStore } from '@sluice/store';
import type { Uploads } from '@sluice/upload';
import type { Access, Principal } from './access.js';
import type { LocationOptions } from './location.js';
import type { ServiceKeys } from './serviceKeys.js';

export type JsonSchema = Record<string, unknown>;

export interface RestParts extends LocationOptions {
  uploads: Uploads;
  records: Records;
  /** Of what is read often; without it the records are asked every time. */
  reads: Reads;
  storeOf: (drive: { bucket: string; prefix: string }) => ObjectStore;
  access: Access;
  /** Where a drive keeps its files if nobody says otherwise. */
  defaultBucket: string;
  /** Of services that report to us; without it nobody may. */
  serviceKeys?: ServiceKeys;
}

export interface Call {
  request: FastifyRequest;
  reply: FastifyReply;
  principal: Principal;
  params: Record<string, string>;
  query: Record<string, string | undefined>;
  parts: RestParts;
}

export interface Route {
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** As Fastify writes it; `*` at the end takes the rest of the path. */
  url: string;
  summary: string;
  /** What is answered when all is well. */
  answers: string;
  query?: Record<string, JsonSchema>;
  headers?: Record<string, string>;
  body?: JsonSchema;
  /** The body is bytes, and read by the handler. */
  raw?: boolean;
  /** Whoever asks identifies in another way. */
  anonymous?: boolean;
  /** For services only, which show a key of their own in the header X-Service-Key. Goes with `anonymous`. */
  serviceKey?: boolean;
  handle: (call: Call) => Promise<unknown>;
}
