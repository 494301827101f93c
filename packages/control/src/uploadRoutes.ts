// Uploads that are under way, each with how far it is. Those that have ended are found by their id: GET /v1/uploads/:id.
import type { Principal } from '@sluice/access';
import type { Drive, UploadRecord } from '@sluice/records';
import type { UploadView } from '@sluice/upload';
import { restErrors, type Route } from '@sluice/rest';
import { isSluiceError } from '@sluice/base';
import type { ControlParts } from './parts.js';
import { pageOf, paging } from './query.js';

export interface OpenUpload {
  id: string;
  tenant: string;
  owner: string | null;
  nodeId: string;
  drive: string;
  path: string;
  state: string;
  size: number | null;
  receivedBytes: number;
  storedBytes: number;
  missing: UploadView['missing'];
  createdAt: string;
  updatedAt: string;
}

export function uploadListRoutes(parts: ControlParts): Route[] {
  return [
    {
      method: 'GET',
      url: '/v1/uploads',
      needs: 'viewer',
      of: 'tenant',
      summary: 'Uploads that are under way, the newest first, with what they have and what they miss.',
      answers: '200 {items, next}',
      query: paging,
      handle: async ({ query, principal }) => {
        const { limit, cursor } = pageOf(query);
        return openUploads(parts, principal, limit, cursor);
      },
    },
  ];
}

export async function openUploads(
  { records, uploads }: Pick<ControlParts, 'records' | 'uploads'>,
  { installation, tenant }: Pick<Principal, 'installation' | 'tenant'>,
  limit: number,
  cursor?: string,
): Promise<{ items: OpenUpload[]; next: string | null }> {
  const page = await records.uploads.pageOfOpen({
    limit,
    ...(!installation && { tenant }),
    ...(cursor !== undefined && { before: placeOf(cursor) }),
  });
  const drives = new Map<string, Promise<Drive | undefined>>();
  const items = await Promise.all(
    page.map(async (record) => {
      if (!drives.has(record.driveId))
        drives.set(record.driveId, records.drives.getById(record.tenant, record.driveId));
      const drive = (await drives.get(record.driveId))?.name ?? '';
      return openUpload(record, drive, await live(record.id));
    }),
  );
  const last = page.length === limit ? page.at(-1)! : undefined;
  return { items, next: last ? `${last.createdAt.toISOString()}~${last.id}` : null };

  /** Redis may have lost it, or it ended a moment ago. */
  async function live(id: string): Promise<UploadView | undefined> {
    try {
      return await uploads.status(id);
    } catch (error) {
      if (isSluiceError(error, 'UPLOAD_NOT_FOUND')) return undefined;
      throw error;
    }
  }
}

function openUpload(record: UploadRecord, drive: string, now: UploadView | undefined): OpenUpload {
  const { id, tenant, owner, nodeId, path } = record;
  return {
    ...{ id, tenant, owner: owner ?? null, nodeId, drive, path },
    state: now?.state ?? 'PENDING',
    size: now?.size ?? record.declaredSize ?? null,
    receivedBytes: now?.receivedBytes ?? 0,
    storedBytes: now?.storedBytes ?? 0,
    missing: now?.missing ?? [],
    createdAt: record.createdAt.toISOString(),
    updatedAt: now?.updatedAt ?? record.createdAt.toISOString(),
  };
}

function placeOf(cursor: string): { createdAt: Date; id: string } {
  const [time = '', id = ''] = cursor.split('~');
  const createdAt = new Date(time);
  if (Number.isNaN(createdAt.getTime()) || id === '')
    throw restErrors.REQUEST_INVALID({ reason: 'the cursor is not the `next` of a page' });
  return { createdAt, id };
}
