// A route as this interface declares it: once for the server, once for the OpenAPI document, once for the tests that try every route as
// everybody. Who may use it, and what the audit log calls it, is part of the declaration: without them it does not compile.
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Access, Demand, KeyRing, Principal } from '@sluice/access';
import type { Reads } from '@sluice/reads';
import type { Records } from '@sluice/records';
import type { ObjectStore } from '@sluice/store';
import type { Uploads } from '@sluice/upload';
import type { LocationOptions } from './location.js';
import type { StreamCaps } from './openStream.js';
import type { ServiceKeys } from './serviceKeys.js';

export type JsonSchema = Record<string, unknown>;

export interface RestParts extends LocationOptions {
  uploads: Uploads;
  records: Records;
  /** Of what is read often; without it the records are asked every time. */
  reads: Reads;
  storeOf: (drive: { bucket: string; prefix: string }) => ObjectStore;
  access: Access;
  /** Told of changes of keys that are made here, so that they count at once. */
  ring?: KeyRing;
  /** Where a drive keeps its files if nobody says otherwise. */
  defaultBucket: string;
  /** Of services that report to us; without it nobody may. */
  serviceKeys?: ServiceKeys;
  /** A download of which nobody reads a byte for so long is ended (2 minutes). */
  unreadMs?: number;
  /** Other bounds for live streams than the usual ones. */
  streams?: Partial<StreamCaps>;
}

export interface Call {
  request: FastifyRequest;
  reply: FastifyReply;
  principal: Principal;
  params: Record<string, string>;
  query: Record<string, string | undefined>;
  /** Adds to the row of the audit log: which, how many. Short; never a payload, never a secret. */
  note: (details: Record<string, string | number | boolean>) => void;
  parts: RestParts;
}

export type Route = Reading | Changing;

interface Reading extends Declared {
  method: 'GET' | 'HEAD';
  audit?: never;
  concerns?: never;
}

interface Changing extends Declared {
  method: 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** What the audit log calls it, `queue.pause`; false for what is not worth a row, with the reason beside it. */
  audit: `${string}.${string}` | false;
  /** Whose audit log it belongs to, if that is not the tenant of whoever asks; undefined for the installation's. */
  concerns?: (call: Call) => string | undefined;
}

/** `needs` and `of` say who may use it; `tokens` that an upload token is enough, for the uploads that it covers. */
interface Declared extends Demand {
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
  /** For services only, which show a key of their own in the header X-Service-Key. Goes with needs: 'nobody'. */
  serviceKey?: boolean;
  /** A signed link to the node in the address stands in for a key. */
  links?: boolean;
  handle: (call: Call) => Promise<unknown>;
}
