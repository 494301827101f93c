// Where a file is: `drive/folder/name`, as in the address /v1/files/drive/folder/name.
import { ApiError, cliErrors } from './errors.js';
import { pathOf, type Api } from './api.js';

export interface Place {
  drive: string;
  /** Empty for the top of the drive. */
  path: string;
}

export interface NodeReply {
  id: string;
  name: string;
  path: string;
  type: 'FILE' | 'FOLDER';
  status: string;
  size?: number | null;
  etag?: string | null;
  sha256?: string | null;
  contentType?: string | null;
  parentId?: string | null;
  createdAt: string;
  updatedAt: string;
}

const pageOfNodes = 1_000;

export function parsePlace(text: string): Place {
  const [drive = '', ...rest] = text.replace(/^\/+/, '').split('/');
  const path = rest.filter((name) => name !== '').join('/');
  if (drive === '') throw cliErrors.USAGE({ reason: `"${text}" names no drive; write drive/folder/file` });
  return { drive, path };
}

export function parseFile(text: string): Place {
  const place = parsePlace(text);
  if (place.path === '') throw cliErrors.USAGE({ reason: `"${text}" names a drive, not a file in it` });
  return place;
}

export function written({ drive, path }: Place): string {
  return path === '' ? drive : `${drive}/${path}`;
}

export function fileAddress({ drive, path }: Place): string {
  return `${pathOf`/v1/files/${drive}`}/${path.split('/').map(encodeURIComponent).join('/')}`;
}

/** The node at a path, of whatever type; undefined when there is none. */
export async function findNode(api: Api, { drive, path }: Place): Promise<NodeReply | undefined> {
  const { nodes } = await api.get<{ nodes: NodeReply[] }>('/v1/nodes', { drive, path });
  return nodes[0];
}

export async function needNode(api: Api, place: Place): Promise<NodeReply> {
  const node = await findNode(api, place);
  if (!node) throw cliErrors.NOT_FOUND({ what: written(place) });
  return node;
}

/** What is in a folder, or at the top of a drive, by name. */
export async function* nodesIn(
  api: Api,
  drive: string,
  parent: string | undefined,
): AsyncGenerator<NodeReply> {
  const names = { items: 'nodes', cursor: 'after', largestPage: pageOfNodes };
  yield* api.list<NodeReply>('/v1/nodes', { drive, parent }, { limit: 0, all: true }, names);
}

/** Everything below a folder, folders before what is in them. */
export async function* nodesBelow(
  api: Api,
  drive: string,
  parent: string | undefined,
): AsyncGenerator<NodeReply> {
  for await (const node of nodesIn(api, drive, parent)) {
    yield node;
    if (node.type === 'FOLDER') yield* nodesBelow(api, drive, node.id);
  }
}

export function isMissing(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404;
}
