// Everything that Sluice caches, in one place: the key, the shape and the life of each family, without its loader. Whoever knows how to
// load opens it: `cache.open(families.user, { load })`. What kills which values is told in events.ts.
//
// Live state of jobs and uploads is in Redis already and is read there, never cached in Redis from Redis. `job:status` and
// `job:progress` are for readers of the records, who poll; they live for seconds and leave no copies in a process.
import { createHash } from 'node:crypto';
import { defineCache } from './define.js';

export interface User {
  id: number | string;
  email: string;
  rbac_level: string;
}

export interface Rbac {
  rbac_level: string;
  can_upload: boolean;
}

export interface Manager {
  id: number | string;
  email: string;
  analysts: User[];
}

export interface JobStatus {
  job_id: string;
  status: string;
  progress: number;
}

export interface JobProgress {
  processed: number;
  total: number;
  percentage: number;
}

export interface DocumentText {
  document_id: number | string;
  content: string;
}

export interface VectorHit {
  chunk_text: string;
  score: number;
}

export interface Graph {
  nodes: unknown[];
  relationships: unknown[];
}

type Id = number | string;

/** Something of a tenant's. */
export interface Owned {
  tenant: string;
  id: string;
}

/** A page of a folder: so many names after one. */
export interface ListedFolder {
  tenant: string;
  drive: string;
  path: string;
  after: string;
  limit: number;
}

/** A page of a tenant's drives: so many names after one. */
export interface ListedDrives {
  tenant: string;
  after: string;
  limit: number;
}

/** What a cache has to know of a node; the rest is its owner's. */
export interface Node {
  type: string;
  status: string;
}

const seconds = 1_000;
const minutes = 60 * seconds;
const hours = 60 * minutes;

const document = (name: string) =>
  defineCache<Id, DocumentText | undefined>({
    ...{ name, key: (id) => id, ttlMs: hours },
    ...{ hitGoal: 0.85, from: 'storage' },
  });

export const families = {
  user: defineCache<Id, User | undefined>({
    name: 'user',
    key: (id) => id,
    ttlMs: 15 * minutes,
    hitGoal: 0.95,
  }),
  userRbac: defineCache<Id, Rbac | undefined>({
    name: 'user:rbac',
    key: (id) => id,
    ttlMs: 15 * minutes,
    hitGoal: 0.95,
  }),
  usersManagers: defineCache<void, Manager[]>({ name: 'users:managers', key: () => [], ttlMs: 5 * minutes }),
  usersAnalysts: defineCache<Id, User[]>({
    name: 'users:analysts',
    key: (managerId) => managerId,
    ttlMs: 5 * minutes,
    groups: () => ['users:analysts'],
  }),
  jobStatus: defineCache<string, JobStatus | undefined>({
    name: 'job:status',
    key: (id) => id,
    ttlMs: 5 * seconds,
    nearMs: 0,
    hitGoal: 0.9,
  }),
  jobProgress: defineCache<string, JobProgress | undefined>({
    name: 'job:progress',
    key: (id) => id,
    ttlMs: 5 * seconds,
    nearMs: 0,
    hitGoal: 0.9,
  }),
  docSummary: document('doc:summary'),
  docTranscription: document('doc:transcription'),
  docTranslation: document('doc:translation'),
  vectorSearch: defineCache<{ query: string; jobId: string }, VectorHit[]>({
    name: 'vector:search',
    key: ({ query, jobId }) => [md5(query), jobId],
    ttlMs: 30 * minutes,
    hitGoal: 0.7,
    groups: () => ['vector:search'],
  }),
  graph: defineCache<{ jobId: string; documentIds: readonly Id[] }, Graph>({
    name: 'graph',
    key: ({ jobId, documentIds }) => [jobId, digest(JSON.stringify(documentIds.map(String).sort()))],
    ttlMs: 10 * minutes,
    hitGoal: 0.75,
    groups: ({ jobId }) => [['graph', jobId]],
  }),
  /**
   * Files and folders by id and by place. Only those that are there: what is still to come, and what is not there, changes without
   * an event.
   * A folder that moves or goes changes the paths of everything in it, which no key tells: `node:tree` does. That is rare, and they are small
   * and live for minutes: their groups are not indexed.
   */
  node: defineCache<Owned, Node | undefined>({
    name: 'node',
    key: ({ tenant, id }) => [tenant, id],
    ttlMs: 5 * minutes,
    indexed: false,
    groups: ({ tenant }) => [['node:tree', tenant]],
    keeps: isSettled,
  }),
  nodeAt: defineCache<{ tenant: string; drive: string; path: string }, Node | undefined>({
    name: 'node:at',
    key: ({ tenant, drive, path }) => [tenant, drive, digest(path)],
    ttlMs: 5 * minutes,
    indexed: false,
    groups: ({ tenant }) => [['node:tree', tenant]],
    keeps: isSettled,
  }),
  /**
   * Pages of what is in a folder. Whatever comes, goes or changes in a folder kills all pages of it. A page that shows a file which is
   * still to come is not kept: such a file changes quickly and without a word.
   */
  nodeList: defineCache<ListedFolder, { nodes: Node[] } | undefined>({
    name: 'node:list',
    key: ({ tenant, drive, path, after, limit }) => [tenant, drive, digest(path), limit, digest(after)],
    ttlMs: 5 * minutes,
    groups: ({ tenant, drive, path }) => [childrenOf(tenant, drive, path), ['node:tree', tenant]],
    keeps: (list) => list !== undefined && list !== null && list.nodes.every(isListable),
  }),
  drive: defineCache<{ tenant: string; name: string }, object | undefined>({
    name: 'drive',
    key: ({ tenant, name }) => [tenant, name],
    ttlMs: 5 * minutes,
    groups: ({ tenant }) => [['drive:all', tenant]],
    keeps: isThere,
  }),
  driveById: defineCache<Owned, object | undefined>({
    name: 'drive:id',
    key: ({ tenant, id }) => [tenant, id],
    ttlMs: 5 * minutes,
    groups: ({ tenant }) => [['drive:all', tenant]],
    keeps: isThere,
  }),
  /** Pages of all drives of a tenant; also of none, because the first one tells. */
  driveList: defineCache<ListedDrives, object[]>({
    name: 'drive:list',
    key: ({ tenant, after, limit }) => [tenant, limit, digest(after)],
    ttlMs: 5 * minutes,
    groups: ({ tenant }) => [['drive:all', tenant]],
  }),
  /** Only what has ended, and so does not change any more. */
  endedUpload: defineCache<Owned, { status: string } | undefined>({
    name: 'upload:ended',
    key: ({ tenant, id }) => [tenant, id],
    ttlMs: 10 * minutes,
    keeps: (upload) => upload !== undefined && upload !== null && upload.status !== 'OPEN',
  }),
} as const;

/** What is directly in a folder; the root of a drive is the empty path. */
export function childrenOf(tenant: string, drive: string, path: string): readonly [string, ...string[]] {
  return ['node:children', tenant, drive, digest(path)];
}

function isSettled(node: Node | null | undefined): boolean {
  return node?.type === 'FOLDER' || node?.status === 'ACTIVE';
}

function isListable(node: Node): boolean {
  return isSettled(node) || node.status === 'FAILED';
}

function isThere(value: object | null | undefined): boolean {
  return value !== undefined && value !== null;
}

/** What is too long for a name. Anybody can make two paths that have one MD5, and would read one file under the name of the other. */
function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

/** As the source document names the keys of searches. Who makes two that meet gets the wrong one of their own. */
function md5(text: string): string {
  return createHash('md5').update(text).digest('hex');
}
