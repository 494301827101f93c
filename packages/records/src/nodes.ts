/**
 * Nodes: folders and files. Files become ACTIVE through uploads only; here they are found, listed, moved and deleted.
 *
 * A deletion dooms the objects behind the files in the same transaction. A clean-up job takes them from `doomed`, deletes them
 * from the store and then forgets them; should it die in between, it finds them again.
 */
import { sql } from 'kysely';
import { foldersOf, type OnChange } from './changes.js';
import type { Database } from './database.js';
import { pageSize } from './drives.js';
import { recordsErrors } from './errors.js';
import { checkMetadata, checkOptionalText, isNodeId, type Metadata } from './metadata.js';
import { toNode, type NodeRecord, type NodeStatus } from './model.js';
import { checkName, checkPath } from './names.js';
import { build, type NodeRow } from './schema.js';

/** What one transaction deletes at most, unless the caller says otherwise. */
export const DEFAULT_DELETE_LIMIT = 10_000;

/** Nobody waits long for what is only told. */
const MARK_LIMIT_MS = 1_000;

/** Where a node is to be: a whole path, or a name in a folder whose id is known (`null` is the root of the drive). */
export type Place = { path: string } | { parentId: string | null; name: string };

export type CreateFolder = {
  tenant: string;
  drive: string;
  owner?: string;
  metadata?: Metadata;
} & Place;

export interface ListNodes {
  /** The name that ended the page before. */
  after?: string;
  limit?: number;
  /** Only nodes in this status. */
  status?: NodeStatus;
}

export interface MoveNode {
  tenant: string;
  id: string;
  /** `null` is the root of the drive; left out, the folder stays the same. */
  parentId?: string | null;
  name?: string;
}

export interface DeleteNode {
  tenant: string;
  id: string;
  /** A folder with something in it is deleted only if this is said. */
  recursive?: boolean;
  /** A folder with more nodes in it is refused. */
  limit?: number;
  /** Deletes only a file with one of these ETags (without quotation marks), or any file (`*`). */
  ifMatch?: string[];
}

export interface Deletion {
  /** How many nodes are gone; 0 if there was no such node (any more). */
  deleted: number;
  /** Already noted as doomed. */
  objectKeys: string[];
}

interface CreatedFolder {
  node: NodeRow;
  created: boolean;
  /** The highest folder that this call made; another may have made it at the same moment. */
  made?: string | null;
}

/** Where it was. */
interface Gone {
  path: string;
  drive: string;
  isFolder: boolean;
}

export class Nodes {
  constructor(
    private readonly database: Database,
    private readonly nudge: () => void,
    private readonly onChange: OnChange,
  ) {}

  async get(tenant: string, id: string): Promise<NodeRecord | undefined> {
    if (!isNodeId(id)) return undefined;
    const question = build.selectFrom('nodes').selectAll().where('id', '=', id).where('tenant', '=', tenant);
    const [row] = await this.database.ask('get a node', question);
    return row && toNode(row);
  }

  async getByPath(tenant: string, drive: string, path: string): Promise<NodeRecord | undefined> {
    const question = this.inDrive(tenant, drive).where('path', '=', checkPath(path));
    const [row] = await this.database.ask('get a node by its path', question);
    return row && toNode(row);
  }

  /** Which of these objects are files. There is no index for this question: it reads all nodes, and is for rare doubts. */
  async objectsInUse(objectKeys: string[]): Promise<Set<string>> {
    if (objectKeys.length === 0) return new Set();
    const question = build.selectFrom('nodes').select('object_key').where('object_key', 'in', objectKeys);
    return new Set((await this.database.ask('find objects in use', question)).map((row) => row.object_key!));
  }

  /** What is directly in a folder, by name. */
  async list(
    tenant: string,
    drive: string,
    parentId: string | null,
    page: ListNodes = {},
  ): Promise<NodeRecord[]> {
    if (parentId !== null && !isNodeId(parentId)) return [];
    const root = driveIdOf(tenant, drive);
    let question = this.inDrive(tenant, drive)
      .where(({ fn }) => fn.coalesce('parent_id', 'drive_id'), '=', parentId ?? root)
      .where('name', '>', page.after ?? '')
      .orderBy('name')
      .limit(pageSize(page.limit));
    if (page.status) question = question.where('status', '=', page.status);
    return (await this.database.ask('list nodes', question)).map(toNode);
  }

  /** Makes a folder and the folders above it; one that is there already is returned as it is. */
  async createFolder(folder: CreateFolder): Promise<{ node: NodeRecord; created: boolean }> {
    const { tenant } = folder;
    const drive = folder.drive.normalize('NFC');
    const answer = await this.database.call<CreatedFolder>('sluice_create_folder', {
      tenant,
      drive,
      owner: checkOptionalText('owner', folder.owner),
      metadata: checkMetadata(folder.metadata),
      ...checkPlace(folder),
    });
    if (answer.made) this.nudge();
    // One that was there may have been made by an earlier attempt of the same call.
    const folders = foldersOf(answer.made ?? answer.node.path, undefined, !answer.made);
    await this.onChange({ what: 'lists', tenant, drive, folders });
    return { node: toNode(answer.node), created: answer.created };
  }

  /** Moves or renames, with everything below. A node that is already there is returned as it is. */
  async move({ tenant, id, parentId, name }: MoveNode): Promise<{ node: NodeRecord; changed: boolean }> {
    if (!isNodeId(id)) throw recordsErrors.NODE_NOT_FOUND({ node: id });
    if (parentId && !isNodeId(parentId)) throw recordsErrors.NODE_NOT_FOUND({ node: parentId });
    const answer = await this.database.call<{ node: NodeRow; changed: boolean }>('sluice_move', {
      tenant,
      id,
      ...(parentId !== undefined && { parentId }),
      ...(name !== undefined && { name: checkName(name) }),
    });
    if (answer.changed) this.nudge();
    // Also when nothing is left to do: an earlier attempt may have done it, and its answer was lost.
    await this.onChange({ what: 'tree', tenant, nodeId: id });
    return { node: toNode(answer.node), changed: answer.changed };
  }

  /** Bytes of a file that was never ACTIVE have come. */
  async markUploading(id: string): Promise<void> {
    const question = build
      .updateTable('nodes')
      .set({ status: 'UPLOADING', updated_at: sql<Date>`clock_timestamp()` })
      .where('id', '=', id)
      .where('status', '=', 'PENDING');
    await this.database.ask('mark a node', question, { deadlineMs: MARK_LIMIT_MS });
  }

  async delete({
    tenant,
    id,
    recursive = false,
    limit = DEFAULT_DELETE_LIMIT,
    ifMatch,
  }: DeleteNode): Promise<Deletion> {
    if (!isNodeId(id)) return { deleted: 0, objectKeys: [] };
    const { path, drive, isFolder, ...deletion } = await this.database.call<Deletion & Gone>(
      'sluice_delete',
      {
        ...{ tenant, id, recursive, limit },
        ...(ifMatch && { ifMatch }),
      },
    );
    if (deletion.deleted > 0) this.nudge();
    // Nothing to delete: an earlier attempt may have done it, and its answer was lost.
    if (deletion.deleted === 0 || isFolder) await this.onChange({ what: 'tree', tenant, nodeId: id });
    else await this.onChange({ what: 'file', tenant, drive, nodeId: id, path });
    return deletion;
  }

  private inDrive(tenant: string, drive: string) {
    return build.selectFrom('nodes').selectAll().where('drive_id', '=', driveIdOf(tenant, drive));
  }
}

function driveIdOf(tenant: string, drive: string) {
  const named = build.selectFrom('drives').select('drives.id').where('tenant', '=', tenant);
  return named.where('name', '=', drive.normalize('NFC'));
}

export function checkPlace(place: Place): { path: string } | { parentId: string | null; name: string } {
  if ('path' in place && place.path !== undefined) return { path: checkPath(place.path) };
  const { parentId, name } = place as { parentId: string | null; name: string };
  if (parentId !== null && !isNodeId(parentId)) throw recordsErrors.NODE_NOT_FOUND({ node: parentId });
  return { parentId, name: checkName(name) };
}
