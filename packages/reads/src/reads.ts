// What is read most: files by place and by id, drives, and uploads that have ended. `CachedReads` asks the cache first; `directReads`
// asks the records every time, for who has no cache.
//
// Live uploads are not read here: their state is in Redis already. Neither are lists, folders, and files that are still to come: they
// change without an event that could correct a copy.
import { families, type Cache, type CacheFamily, type Family } from '@sluice/cache';
import type { Drive, NodeRecord, Records, UploadRecord } from '@sluice/records';

export interface Reads {
  node(tenant: string, id: string): Promise<NodeRecord | undefined>;
  nodeAt(tenant: string, drive: string, path: string): Promise<NodeRecord | undefined>;
  drive(tenant: string, name: string): Promise<Drive | undefined>;
  driveById(tenant: string, id: string): Promise<Drive | undefined>;
  /** Undefined also for one that is still open. */
  endedUpload(tenant: string, id: string): Promise<UploadRecord | undefined>;
}

export function directReads({ nodes, drives, uploads }: Records): Reads {
  return {
    node: (tenant, id) => nodes.get(tenant, id),
    nodeAt: (tenant, drive, path) => nodes.getByPath(tenant, drive, path),
    drive: (tenant, name) => drives.get(tenant, name),
    driveById: (tenant, id) => drives.getById(tenant, id),
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

export class CachedReads implements Reads {
  readonly #node: CacheFamily<Owned, NodeRecord | undefined>;
  readonly #nodeAt: CacheFamily<Place, NodeRecord | undefined>;
  readonly #drive: CacheFamily<{ tenant: string; name: string }, Drive | undefined>;
  readonly #driveById: CacheFamily<Owned, Drive | undefined>;
  readonly #endedUpload: CacheFamily<Owned, UploadRecord | undefined>;

  constructor(cache: Cache, records: Records) {
    const direct = directReads(records);
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

  async drive(tenant: string, name: string): Promise<Drive | undefined> {
    return dated(await this.#drive.get({ tenant, name: name.normalize('NFC') }), 'createdAt');
  }

  async driveById(tenant: string, id: string): Promise<Drive | undefined> {
    return dated(await this.#driveById.get({ tenant, id: id.toLowerCase() }), 'createdAt');
  }

  async endedUpload(tenant: string, id: string): Promise<UploadRecord | undefined> {
    return ended(dated(await this.#endedUpload.get({ tenant, id }), 'createdAt', 'endedAt'));
  }
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
