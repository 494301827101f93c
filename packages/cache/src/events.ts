// What happens in the domain, and which values and groups it kills. An event is applied twice: by whoever made the change, right after
// the commit, so that the next read is right; and by the consumer of the outbox, so that a crash between the two loses nothing.
// Applying it again does no harm. A consumer goes on only after `applied`: `kept` means that Redis could not be reached.
import type { Cache } from './cache.js';
import { groupName, valueName, type Family, type GroupRef } from './define.js';
import type { Invalidated } from './engine.js';
import { childrenOf, families } from './families.js';
import type { Killed } from './kept.js';

type Id = number | string;

export interface DomainEvents {
  /** Created, updated or deleted. */
  'user.changed': { userId: Id };
  'job.status.changed': { jobId: string };
  'document.processed': { documentId: Id };
  'graph.entity.added': { jobId: string };
  /** A file was created, replaced or deleted; moved, with a place, the one that it had. `withSubtree`: paths below it changed. */
  'node.changed': {
    tenant: string;
    nodeId: string;
    at?: { drive: string; path: string };
    withSubtree: boolean;
  };
  /** What is directly in a folder (a path; the root is the empty one) is not what it was. */
  'folder.changed': { tenant: string; drive: string; path: string };
  /** Nothing was in it before. */
  'drive.created': { tenant: string };
  'drive.changed': { tenant: string };
  'upload.ended': { tenant: string; uploadId: string };
}

export type DomainEvent = {
  [Type in keyof DomainEvents]: { type: Type } & DomainEvents[Type];
}[keyof DomainEvents];

type Kills<Event> = (event: Event) => { values: string[]; groups: GroupRef[] };

const one = <K, V>(family: Family<K, V>, key: K): string => valueName(family, key);

/** The table: each event, and what it kills. */
export const kills: { readonly [Type in keyof DomainEvents]: Kills<DomainEvents[Type]> } = {
  'user.changed': ({ userId }) => ({
    values: [
      one(families.user, userId),
      one(families.userRbac, userId),
      one(families.usersManagers, undefined),
    ],
    groups: ['users:analysts'],
  }),
  'job.status.changed': ({ jobId }) => ({
    values: [one(families.jobStatus, jobId), one(families.jobProgress, jobId)],
    groups: [],
  }),
  'document.processed': ({ documentId }) => ({
    values: [
      one(families.docSummary, documentId),
      one(families.docTranscription, documentId),
      one(families.docTranslation, documentId),
    ],
    groups: ['vector:search'],
  }),
  'graph.entity.added': ({ jobId }) => ({ values: [], groups: [['graph', jobId]] }),
  'node.changed': ({ tenant, nodeId, at, withSubtree }) => ({
    values: [
      one(families.node, { tenant, id: nodeId }),
      ...(at ? [one(families.nodeAt, { tenant, ...at })] : []),
    ],
    groups: [
      ...(at ? [childrenOf(tenant, at.drive, folderOf(at.path))] : []),
      ...(withSubtree ? [['node:tree', tenant] as const] : []),
    ],
  }),
  'folder.changed': ({ tenant, drive, path }) => ({ values: [], groups: [childrenOf(tenant, drive, path)] }),
  'drive.created': ({ tenant }) => ({ values: [], groups: [['drive:all', tenant]] }),
  'drive.changed': ({ tenant }) => ({
    values: [],
    groups: [
      ['drive:all', tenant],
      ['node:tree', tenant],
    ],
  }),
  'upload.ended': ({ tenant, uploadId }) => ({
    values: [one(families.endedUpload, { tenant, id: uploadId })],
    groups: [],
  }),
};

function folderOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

/** The names of what some events kill, each once. */
export function killedBy(...events: readonly DomainEvent[]): Killed {
  const names = new Set<string>();
  const groups = new Set<string>();
  for (const event of events) {
    const killed = (kills[event.type] as Kills<DomainEvent>)(event);
    for (const name of killed.values) names.add(name);
    for (const group of killed.groups) groups.add(groupName(group));
  }
  return { names: [...names], groups: [...groups] };
}

export function applyEvent(cache: Cache, ...events: readonly DomainEvent[]): Promise<Invalidated> {
  return cache.kill(killedBy(...events));
}
