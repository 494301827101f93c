// Changes of the records in the language of the cache: as their writer tells them right after its commit, and as the outbox publishes
// them. Both say the same; whichever comes second finds nothing left to do.
import type { DomainEvent } from '@sluice/cache';
import { folderOf, type Change } from '@sluice/records';

export function eventsOfChange(change: Change): DomainEvent[] {
  const { tenant } = change;
  switch (change.what) {
    case 'file': {
      const { nodeId, drive, path, folders = [] } = change;
      const file = { type: 'node.changed', tenant, nodeId, at: { drive, path }, withSubtree: false } as const;
      return [file, ...listsOf(tenant, drive, folders)];
    }
    case 'lists':
      return listsOf(tenant, change.drive, change.folders);
    case 'tree':
      return [{ type: 'node.changed', tenant, nodeId: change.nodeId, withSubtree: true }];
    case 'drive':
      return [driveEvent(tenant, change.is === 'there')];
  }
}

function driveEvent(tenant: string, isThere: boolean): DomainEvent {
  return { type: isThere ? 'drive.created' : 'drive.changed', tenant };
}

function listsOf(tenant: string, drive: string, folders: readonly string[]): DomainEvent[] {
  return folders.map((path) => ({ type: 'folder.changed', tenant, drive, path }));
}

interface Message {
  tenant?: string;
  drive?: string;
  path?: string;
  nodeId?: string;
  nodeType?: string;
  previousPath?: string;
  uploadId?: string;
}

/** Something that is no event of ours changes nothing of ours. */
function read(value: string): Message {
  try {
    return (JSON.parse(value) ?? {}) as Message;
  } catch {
    return {};
  }
}

/** What a published event means for the cache; nothing, for most. */
export function eventsOfMessage(topic: string, value: string): DomainEvent[] {
  const [, about, what] = /^repository\.(documents|drives|folders|uploads)\.([a-z]+)$/.exec(topic) ?? [];
  if (about === undefined) return [];
  const { tenant, drive, path, nodeId, nodeType, previousPath, uploadId } = read(value);
  if (tenant === undefined) return [];
  if (about === 'drives') return [driveEvent(tenant, what === 'created')];
  const isPlaced = drive !== undefined && path !== undefined;
  if (about === 'folders') return isPlaced ? listsOf(tenant, drive, [path]) : [];
  if (about === 'uploads') {
    const hasEnded = what !== 'initiated' && uploadId !== undefined;
    return [
      ...(hasEnded ? [{ type: 'upload.ended', tenant, uploadId } as const] : []),
      ...(isPlaced ? listsOf(tenant, drive, [folderOf(path)]) : []),
    ];
  }
  if (nodeId === undefined) return [];
  const withSubtree = nodeType === 'FOLDER' || previousPath !== undefined;
  return [{ type: 'node.changed', tenant, nodeId, ...(isPlaced && { at: { drive, path } }), withSubtree }];
}
