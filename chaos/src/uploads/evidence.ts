// What a run of uploads leaves behind, and all that its checker may read: what clients meant to send and what they were answered, what
// was broken when, and a copy of everything that Redis, the records and the store hold in the end.
import { readdirSync } from 'node:fs';
import { files as queueFiles, readJournal } from '../evidence.js';
import type { Shape } from './shapes.js';

/** A client's log. The key of a file is also the beginning of its idempotency keys: `<key>.<try>`. */
export type ClientLine =
  | { e: 'intent'; at: number; key: string; path: string; size: number; sha256: string; shape: Shape }
  | { e: 'begun'; at: number; key: string; upload: string }
  /** Every answer; without a status nobody answered. */
  | { e: 'answer'; at: number; key: string; what: string; status?: number; code?: string; stack?: true }
  /** Other bytes were sent for a chunk that had been accepted. */
  | { e: 'forged'; at: number; key: string; upload: string }
  | {
      e: 'completed';
      at: number;
      key: string;
      upload?: string;
      nodeId: string;
      size: number;
      sha256: string;
      version: number;
    }
  | { e: 'ended'; at: number; key: string; upload: string; state: string; code?: string }
  | { e: 'walked'; at: number; key: string; upload?: string }
  /** The file was downloaded again and has other bytes. */
  | { e: 'misread'; at: number; key: string; sha256: string }
  /** Not at its end when there was no more time, though nothing was broken any more. */
  | { e: 'stuck'; at: number; key: string; upload?: string; why: string };

export interface UploadRow {
  id: string;
  node_id: string;
  path: string;
  object_key: string;
  status: string;
  reason: string | null;
  idempotency_key: string | null;
  result: { nodeId: string; version: number; size: number; sha256: string; objectKey: string } | null;
}

export interface NodeRow {
  id: string;
  path: string;
  type: string;
  status: string;
  version: number;
  size: string | null;
  object_key: string | null;
  sha256: string | null;
}

export interface Books {
  uploads: UploadRow[];
  nodes: NodeRow[];
  drives: { id: string }[];
  /** Rows that wait to be published, objects that wait to be deleted. */
  outbox: number;
  doomed: number;
  usage: { bytes: number; files: number };
  objects: { key: string; size: number; sha256: string }[];
  multiparts: string[];
  /** Of both Redis servers. The time to live is in ms, −1 for ever. */
  keys: { key: string; type: string; ttlMs: number }[];
  budget: Record<string, string>;
  attention: string[];
  jobs: number;
  dead: number;
  /** In the order of the stream. */
  events: { id: string; topic: string; key: string }[];
}

export const files = {
  faults: queueFiles.faults,
  log: queueFiles.log,
  books: 'upload-books.json',
  client: (name: string) => `client-${name}.jsonl`,
};

export function readClients(folder: string): ClientLine[] {
  const names = readdirSync(folder).filter((name) => name.startsWith('client-') && name.endsWith('.jsonl'));
  return names.flatMap((name) => readJournal<ClientLine>(folder, name));
}
