/**
 * The protocol of uploads as functions: one per request, each safe to repeat. What comes back is checked where it arrives, so
 * that a login page of a wireless network is not taken for an acknowledgement.
 */
import { type Connection, isObject } from './connection.js';
import { uploadError } from './errors.js';
import type { Bytes } from './platform.js';

const states = ['PENDING', 'UPLOADING', 'COMPLETING', 'COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED'] as const;
export type ServerState = (typeof states)[number];

/** More ranges than this a view never lists; so many may mean that there are more. */
export const MAX_LISTED_RANGES = 100;

/** First and last byte, both included; `null` is the open end of an unknown length. */
export type Range = readonly [first: number, last: number | null];

export interface UploadResult {
  nodeId: string;
  size: number;
  etag: string;
  sha256: string | null;
  crc64: string | null;
  version: number | string;
}

export interface UploadView {
  id: string;
  state: ServerState;
  size: number | null;
  chunkSize: number | null;
  partSize: number;
  receivedBytes: number;
  missing: Range[];
  error: { code: string; message: string } | null;
  result: UploadResult | null;
}

export interface Ack {
  duplicate?: boolean;
  state: ServerState;
  receivedBytes: number;
  result?: UploadResult | null;
}

export interface Initiation {
  drive: string;
  path: string;
  size?: number;
  contentType?: string;
  chunkSize?: number;
  sha256?: string;
  metadata?: Record<string, string>;
  ifExists?: 'replace' | 'fail';
}

/** One chunk on its way. A server that was told no chunk size takes byte ranges. */
export interface Shipment {
  index: number;
  firstByte: number;
  bytes: Bytes;
  digest: string;
  as: 'chunk' | 'last chunk' | 'range';
  size: number | null;
}

export class Protocol {
  readonly connection: Connection;

  constructor(connection: Connection) {
    this.connection = connection;
  }

  async initiate(initiation: Initiation, idempotencyKey: string, signal: AbortSignal): Promise<UploadView> {
    const headers = { 'idempotency-key': idempotencyKey };
    return viewOf(
      await this.connection.call({ method: 'POST', path: '/v1/uploads', headers, json: initiation, signal }),
    );
  }

  async status(id: string, signal: AbortSignal): Promise<UploadView> {
    return viewOf(await this.connection.call({ method: 'GET', path: pathOf(id), signal }));
  }

  async send(id: string, shipment: Shipment, signal: AbortSignal): Promise<Ack> {
    const { index, firstByte, bytes, digest, as, size } = shipment;
    const headers: Record<string, string> = {
      'content-type': 'application/octet-stream',
      'content-digest': digest,
    };
    let path = `${pathOf(id)}/chunks/${index}${as === 'last chunk' ? '?last=true' : ''}`;
    if (as === 'range') {
      path = `${pathOf(id)}/bytes`;
      headers['content-range'] = `bytes ${firstByte}-${firstByte + bytes.length - 1}/${size ?? '*'}`;
    }
    return ackOf(await this.connection.call({ method: 'PUT', path, headers, body: bytes, signal }));
  }

  async complete(
    id: string,
    facts: { size?: number; sha256?: string },
    signal: AbortSignal,
  ): Promise<UploadView> {
    const path = `${pathOf(id)}/complete`;
    return viewOf(await this.connection.call({ method: 'POST', path, json: facts, signal }));
  }

  async cancel(id: string, signal: AbortSignal): Promise<UploadView> {
    return viewOf(await this.connection.call({ method: 'DELETE', path: pathOf(id), signal }));
  }
}

export function pathOf(id: string): string {
  return `/v1/uploads/${encodeURIComponent(id)}`;
}

function viewOf(reply: unknown): UploadView {
  if (!isObject(reply) || typeof reply['id'] !== 'string' || !hasState(reply)) {
    throw uploadError('BAD_REPLY', 'it describes no upload');
  }
  const missing = Array.isArray(reply['missing']) ? (reply['missing'] as unknown[]) : [];
  if (!missing.every(isRange)) throw uploadError('BAD_REPLY', 'its missing ranges make no sense');
  return {
    ...(reply as unknown as UploadView),
    missing,
    size: count(reply['size']),
    chunkSize: count(reply['chunkSize']) || null,
    partSize: count(reply['partSize']) ?? 0,
    receivedBytes: count(reply['receivedBytes']) ?? 0,
    result: isObject(reply['result']) ? (reply['result'] as unknown as UploadResult) : null,
  };
}

function ackOf(reply: unknown): Ack {
  if (!isObject(reply) || !hasState(reply)) throw uploadError('BAD_REPLY', 'it acknowledges nothing');
  return { ...(reply as unknown as Ack), receivedBytes: count(reply['receivedBytes']) ?? 0 };
}

function hasState(reply: Record<string, unknown>): boolean {
  return states.some((state) => state === reply['state']);
}

function count(value: unknown): number | null {
  return Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : null;
}

function isRange(value: unknown): value is Range {
  if (!Array.isArray(value)) return false;
  const [first, last] = value as unknown[];
  return count(first) !== null && (last === null || (count(last) ?? -1) >= Number(first));
}
