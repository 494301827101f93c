// What is read most: files and folders by place and by id, what is in a folder, drives and their list, and uploads that have ended. `CachedReads` asks
// the cache first; `directReads` asks the records every time, for who has no cache.
//
// Live uploads are not read here: their state is in Redis already. Files that are still to come, and lists that show one, are asked for
// every time: they change without an event that could correct a copy.
//
// A list is kept by the path of its folder, because that is what events tell. Whoever asks for the folder by its id gets the list of
// its path only if the same folder is still there; otherwise it has just been moved, and the records are asked.
import {
  families,
  type Cache,
  type CacheFamily,
  type Family,
  type ListedDrives,
  type ListedFolder,
} from '@sluice/cache';
import type { Drive, ListNodes, NodeRecord, Records, UploadRecord } from '@sluice/records';

export interface Reads {
  node(tenant: string, id: string): Promise<NodeRecord | undefined>;
  nodeAt(tenant: string, drive: string, path: string): Promise<NodeRecord | undefined>;
  /** What is directly in a folder, by name; without one, at the top of the drive. */
  list(tenant: string, drive: string, folder: FolderRef | undefined, page: ListPage): Promise<NodeRecord[]>;
  drive(tenant: string, name: string): Promise<Drive | undefined>;
  driveById(tenant: string, id: string): Promise<Drive | undefined>;
  /** By name. */
  drives(tenant: string, page: ListPage): Promise<Drive[]>;
  /** Undefined also for one that is still open. */
  endedUpload(tenant: string, id: string): Promise<UploadRecord | undefined>;
}

export type FolderRef = Pick<NodeRecord, 'id' | 'path'>;
export type ListPage = Pick<ListNodes, 'after'> & { limit: number };

export function directReads({ nodes, drives, uploads }: Records): Reads {
  return {
    node: (tenant, id) => nodes.get(tenant, id),
    nodeAt: (tenant, drive, path) => nodes.getByPath(tenant, drive, path),
    list: (tenant, drive, folder, page) => nodes.list(tenant, drive, folder?.id ?? null, page),
    drive: (tenant, name) => drives.get(tenant, name),
    driveById: (tenant, id) => drives.getById(tenant, id),
    drives: (tenant, page) => drives.list(tenant, page),
    endedUpload: async (tenant, id) => ended(await uploads.get(tenant, id)),
  };
}

interface Owned {
  tenant: string;
  id: string;
}

interface Place {
  tenant: string;
  drive: string;
  path: string;
}

/** Null for the top of a drive. */
interface ListedNodes {
  folderId: string | null;
  nodes: NodeRecord[];
}

export class CachedReads implements Reads {
  readonly #node: CacheFamily<Owned, NodeRecord | undefined>;
  readonly #nodeAt: CacheFamily<Place, NodeRecord | undefined>;
  readonly #nodeList: CacheFamily<ListedFolder, ListedNodes | undefined>;
  readonly #direct: Reads;
  readonly #drive: CacheFamily<{ tenant: string; name: string }, Drive | undefined>;
  readonly #driveById: CacheFamily<Owned, Drive | undefined>;
  readonly #driveList: CacheFamily<ListedDrives, Drive[] | undefined>;
  readonly #endedUpload: CacheFamily<Owned, UploadRecord | undefined>;

  constructor(cache: Cache, records: Records) {
    const direct = directReads(records);
    this.#direct = direct;
    this.#nodeList = open(cache, families.nodeList, (listed: ListedFolder) => load(direct, listed));
    this.#node = open(cache, families.node, ({ tenant, id }: Owned) => direct.node(tenant, id));
    this.#nodeAt = open(cache, families.nodeAt, ({ tenant, drive, path }: Place) =>
      direct.nodeAt(tenant, drive, path),
    );
    this.#drive = open(cache, families.drive, ({ tenant, name }: { tenant: string; name: string }) =>
      direct.drive(tenant, name),
    );
    this.#driveById = open(cache, families.driveById, ({ tenant, id }: Owned) =>
      direct.driveById(tenant, id),
    );
    this.#driveList = open(cache, families.driveList, ({ tenant, ...page }: ListedDrives) =>
      direct.drives(tenant, page),
    );
    this.#endedUpload = open(cache, families.endedUpload, ({ tenant, id }: Owned) =>
      records.uploads.get(tenant, id),
    );
  }

  async node(tenant: string, id: string): Promise<NodeRecord | undefined> {
    return dated(await this.#node.get({ tenant, id: id.toLowerCase() }), 'createdAt', 'updatedAt');
  }

  async nodeAt(tenant: string, drive: string, path: string): Promise<NodeRecord | undefined> {
    // The names of files are kept in this form; others mean the same file.
    const place = { tenant, drive: drive.normalize('NFC'), path: path.normalize('NFC') };
    return dated(await this.#nodeAt.get(place), 'createdAt', 'updatedAt');
  }

  async list(
    tenant: string,
    drive: string,
    folder: FolderRef | undefined,
    page: ListPage,
  ): Promise<NodeRecord[]> {
    const { after = '', limit } = page;
    const path = (folder?.path ?? '').normalize('NFC');
    const found = await this.#nodeList.get({ tenant, drive: drive.normalize('NFC'), path, after, limit });
    if (!found || found.folderId !== (folder?.id ?? null)) {
      return this.#direct.list(tenant, drive, folder, page);
    }
    return found.nodes.map((node) => dated(node, 'createdAt', 'updatedAt')!);
  }

  async drive(tenant: string, name: string): Promise<Drive | undefined> {
    return dated(await this.#drive.get({ tenant, name: name.normalize('NFC') }), 'createdAt');
  }

  async driveById(tenant: string, id: string): Promise<Drive | undefined> {
    return dated(await this.#driveById.get({ tenant, id: id.toLowerCase() }), 'createdAt');
  }

  async drives(tenant: string, { after = '', limit }: ListPage): Promise<Drive[]> {
    const drives = (await this.#driveList.get({ tenant, after: after.normalize('NFC'), limit }))!;
    return drives.map((drive) => dated(drive, 'createdAt')!);
  }

  async endedUpload(tenant: string, id: string): Promise<UploadRecord | undefined> {
    return ended(dated(await this.#endedUpload.get({ tenant, id }), 'createdAt', 'endedAt'));
  }
}

async function load(direct: Reads, listed: ListedFolder): Promise<ListedNodes | undefined> {
  const { tenant, drive, path, after, limit } = listed;
  const folder = path === '' ? undefined : await direct.nodeAt(tenant, drive, path);
  if (path !== '' && folder?.type !== 'FOLDER') return undefined;
  const nodes = await direct.list(tenant, drive, folder, { after, limit });
  return { folderId: folder?.id ?? null, nodes };
}

/** The families say of their values only what a cache has to know. */
function open<K, V extends object>(
  cache: Cache,
  family: Family<K, object | undefined>,
  load: (key: K) => Promise<V | undefined>,
): CacheFamily<K, V | undefined> {
  return cache.open(family as unknown as Family<K, V | undefined>, { load });
}

function ended(upload: UploadRecord | undefined): UploadRecord | undefined {
  return upload?.status === 'OPEN' ? undefined : upload;
}

/** JSON has no dates. */
function dated<V extends object>(value: V | null | undefined, ...fields: (keyof V)[]): V | undefined {
  if (value === undefined || value === null) return undefined;
  const copy = { ...value };
  for (const field of fields) {
    if (copy[field] !== undefined) copy[field] = new Date(copy[field] as string) as V[keyof V];
  }
  return copy;
}
