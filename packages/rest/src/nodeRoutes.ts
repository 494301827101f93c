// Nodes by their id: list, read, make folders, move, delete, download; and signed links to them.
import { ownerOf } from '@sluice/access';
import { checkName, checkPath, recordsErrors, type NodeRecord } from '@sluice/records';
import { dispositions, downloadHeaders, serveFile } from './download.js';
import { served } from './fileRoutes.js';
import { restErrors } from './errors.js';
import { locationOf } from './location.js';
import type { Call, JsonSchema, Route } from './route.js';

const id: JsonSchema = { type: 'string', format: 'uuid' };
const name: JsonSchema = { type: 'string', minLength: 1, maxLength: 255 };
const defaultPage = 100;
const largestPage = 1_000;
const longestLinkS = 7 * 86_400;
const usualLinkS = 3_600;

export const nodeRoutes: Route[] = [
  {
    method: 'GET',
    url: '/v1/nodes',
    needs: 'viewer',
    of: 'tenant',
    summary: 'List the nodes of a folder, by name, page by page.',
    answers: '200 {nodes, next}',
    query: {
      drive: { type: 'string' },
      parent: { type: 'string', description: 'Id of the folder; the top of the drive without it.' },
      path: { type: 'string', description: 'Only the node at this path, if there is one.' },
      after: { type: 'string', description: 'The `next` of the page before.' },
      limit: { type: 'integer', minimum: 1, maximum: largestPage },
    },
    handle: async ({ principal, query, parts }) => {
      const { drive, parent, path, after } = query;
      if (drive === undefined)
        throw restErrors.REQUEST_INVALID({ reason: 'name a drive: /v1/nodes?drive=main' });
      if (path !== undefined) {
        await needFolder(parts, principal.tenant, drive, undefined);
        const node = await parts.reads.nodeAt(principal.tenant, checkName(drive), checkPath(path));
        return { nodes: node ? [nodeView(node)] : [], next: null };
      }
      const limit = query['limit'] === undefined ? defaultPage : Number(query['limit']);
      if (!Number.isInteger(limit) || limit < 1 || limit > largestPage)
        throw restErrors.REQUEST_INVALID({ reason: `limit must be a whole number from 1 to ${largestPage}` });
      const page = { limit, ...(after !== undefined && { after: checkName(after) }) };
      const { tenant } = principal;
      const folder = await needFolder(parts, tenant, drive, parent);
      const nodes = await parts.reads.list(tenant, drive, folder, page);
      const next = nodes.length === limit ? nodes.at(-1)!.name : null;
      return { nodes: nodes.map(nodeView), next };
    },
  },
  {
    method: 'POST',
    url: '/v1/nodes',
    needs: 'operator',
    of: 'tenant',
    audit: 'folder.create',
    summary: 'Make a folder.',
    answers: '201 and the folder, or 200 if it was there',
    body: {
      type: 'object',
      required: ['drive'],
      additionalProperties: false,
      properties: {
        drive: { type: 'string' },
        path: { type: 'string', maxLength: 1_024 },
        parentId: id,
        name,
      },
    },
    handle: async ({ request, reply, principal, parts }) => {
      const { drive, path, parentId, name } = request.body as NewFolder;
      if ((path === undefined) === (name === undefined) || (path !== undefined && parentId !== undefined))
        throw restErrors.REQUEST_INVALID({
          reason: 'a folder is made with a path, or with a name in a parentId',
        });
      const place = path !== undefined ? { path } : { parentId: parentId ?? null, name: name! };
      const folder = { tenant: principal.tenant, drive: checkName(drive), ...place };
      const owner = ownerOf(principal);
      const { node, created } = await parts.records.nodes.createFolder({
        ...folder,
        ...(owner !== undefined && { owner }),
      });
      reply.code(created ? 201 : 200).header('Location', locationOf(parts, request, `/v1/nodes/${node.id}`));
      return nodeView(node);
    },
  },
  {
    method: 'GET',
    url: '/v1/nodes/:id',
    needs: 'viewer',
    of: 'tenant',
    summary: 'Read a node.',
    answers: '200 and the node',
    handle: async (call) => nodeView(await ownNode(call)),
  },
  {
    method: 'PATCH',
    url: '/v1/nodes/:id',
    needs: 'operator',
    of: 'tenant',
    audit: 'node.move',
    summary: 'Rename a node, or move it to another folder.',
    answers: '200 and the node',
    body: {
      type: 'object',
      additionalProperties: false,
      properties: { name, parentId: { anyOf: [id, { type: 'null' }] } },
    },
    handle: async (call) => {
      const { id: nodeId } = await ownNode(call);
      const change = call.request.body as { name?: string; parentId?: string | null };
      const { node } = await call.parts.records.nodes.move({
        tenant: call.principal.tenant,
        id: nodeId,
        ...change,
      });
      return nodeView(node);
    },
  },
  {
    method: 'DELETE',
    url: '/v1/nodes/:id',
    needs: 'operator',
    of: 'tenant',
    audit: 'node.delete',
    summary: 'Delete a file or an empty folder; with ?recursive=true a folder with all that is in it.',
    answers: '200 {deleted}',
    query: { recursive: { enum: ['true', 'false'] } },
    handle: async (call) => {
      const node = await ownNode(call);
      const recursive = call.query['recursive'] === 'true';
      const { deleted } = await call.parts.records.nodes.delete({
        tenant: call.principal.tenant,
        id: node.id,
        recursive,
      });
      return { deleted };
    },
  },
  ...(['GET', 'HEAD'] as const).map((method): Route => ({
    method,
    url: '/v1/nodes/:id/content',
    needs: 'viewer',
    of: 'tenant',
    links: true,
    summary: 'Download a file by its id, with a key or through a signed link.',
    answers: '200, 206 or 304',
    query: {
      ...dispositions,
      signature: { type: 'string', description: 'Of a link; see POST /v1/links.' },
    },
    headers: downloadHeaders,
    handle: async (call) => {
      const { params, parts } = call;
      const { tenant } = call.principal;
      const node = await nodeOf(parts, tenant, params['id']!);
      if (node.type !== 'FILE' || node.status !== 'ACTIVE')
        throw recordsErrors.NODE_NOT_FOUND({ node: node.id, isFolder: node.type === 'FOLDER' });
      const drive = await driveOf(call, tenant, node);
      return serveFile(parts.storeOf(drive), served(node), call);
    },
  })),
  {
    method: 'POST',
    url: '/v1/links',
    needs: 'operator',
    of: 'tenant',
    audit: 'link.create',
    summary: 'Make a link with which anybody can download a file for a while.',
    answers: '201 {url, expiresAt}',
    body: {
      type: 'object',
      additionalProperties: false,
      properties: {
        nodeId: id,
        drive: { type: 'string' },
        path: { type: 'string' },
        expiresInS: { type: 'integer', minimum: 1, maximum: longestLinkS },
        disposition: { enum: ['inline', 'attachment'] },
      },
    },
    handle: async ({ request, reply, principal, parts }) => {
      const body = request.body as NewLink;
      const node = await linkedNode(parts, principal.tenant, body);
      const expiresAt = new Date(Date.now() + (body.expiresInS ?? usualLinkS) * 1_000);
      const query = parts.access.signLink(principal, node.id, expiresAt, body.disposition ?? 'inline');
      reply.code(201).header('Cache-Control', 'no-store');
      return {
        url: locationOf(parts, request, `/v1/nodes/${node.id}/content?${query.toString()}`),
        expiresAt: expiresAt.toISOString(),
      };
    },
  },
];

interface NewFolder {
  drive: string;
  path?: string;
  parentId?: string;
  name?: string;
}

interface NewLink {
  nodeId?: string;
  drive?: string;
  path?: string;
  expiresInS?: number;
  disposition?: string;
}

/** What is listed must be there: an empty page would say that it is empty. */
async function needFolder(
  { reads }: Call['parts'],
  tenant: string,
  driveName: string,
  parent: string | undefined,
): Promise<NodeRecord | undefined> {
  const drive = await reads.drive(tenant, checkName(driveName));
  if (!drive) throw recordsErrors.DRIVE_NOT_FOUND({ drive: driveName });
  if (parent === undefined) return undefined;
  const folder = await reads.node(tenant, parent);
  if (folder?.driveId !== drive.id) throw recordsErrors.NODE_NOT_FOUND({ node: parent.slice(0, 80) });
  if (folder.type !== 'FOLDER') throw recordsErrors.NOT_A_FOLDER({ path: folder.path });
  return folder;
}

async function linkedNode(parts: Call['parts'], tenant: string, link: NewLink): Promise<NodeRecord> {
  const { nodeId, drive, path } = link;
  const isByPath = drive !== undefined && path !== undefined;
  if ((nodeId !== undefined) === isByPath)
    throw restErrors.REQUEST_INVALID({ reason: 'a link is made for a nodeId, or for a drive and a path' });
  const node = isByPath
    ? await parts.reads.nodeAt(tenant, checkName(drive), path)
    : await nodeOf(parts, tenant, nodeId!);
  if (node?.type !== 'FILE' || node.status !== 'ACTIVE')
    throw recordsErrors.NODE_NOT_FOUND({ node: nodeId ?? path ?? '', isFolder: node?.type === 'FOLDER' });
  return node;
}

/** What everybody may see of a node: not where its bytes lie. */
export function nodeView(node: NodeRecord): object {
  const { driveId, objectKey: _, tenant: __, ...rest } = node;
  return {
    ...rest,
    driveId,
    createdAt: node.createdAt.toISOString(),
    updatedAt: node.updatedAt.toISOString(),
  };
}

/** The node of the address, if it is the caller's. */
export function ownNode({ params, principal, parts }: Call): Promise<NodeRecord> {
  return nodeOf(parts, principal.tenant, params['id']!);
}

async function nodeOf({ reads }: Call['parts'], tenant: string, nodeId: string): Promise<NodeRecord> {
  const isId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(nodeId);
  const node = isId ? await reads.node(tenant, nodeId) : undefined;
  if (!node) throw recordsErrors.NODE_NOT_FOUND({ node: nodeId.slice(0, 80) });
  return node;
}

async function driveOf({ parts }: Call, tenant: string, { driveId }: NodeRecord) {
  const drive = await parts.reads.driveById(tenant, driveId);
  if (!drive) throw recordsErrors.DRIVE_NOT_FOUND({ drive: driveId });
  return drive;
}
