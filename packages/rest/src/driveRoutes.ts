// Drives, and tokens for browsers that upload to them.
import type { Scope } from '@sluice/access';
import { checkName, recordsErrors } from '@sluice/records';
import { restErrors } from './errors.js';
import type { Route } from './route.js';

const drivePage = 1_000;
const longestTokenS = 86_400;
const usualTokenS = 900;

export const driveRoutes: Route[] = [
  {
    method: 'GET',
    url: '/v1/drives',
    needs: 'viewer',
    of: 'tenant',
    summary: 'List the drives.',
    answers: '200 {drives, next}',
    query: { after: { type: 'string', description: 'The `next` of the page before.' } },
    handle: async ({ principal, query, parts }) => {
      const after = query['after'] === undefined ? {} : { after: checkName(query['after']) };
      const drives = await parts.reads.drives(principal.tenant, { limit: drivePage, ...after });
      return {
        drives: drives.map(driveView),
        next: drives.length === drivePage ? drives.at(-1)!.name : null,
      };
    },
  },
  {
    method: 'PUT',
    url: '/v1/drives/:name',
    needs: 'admin',
    of: 'tenant',
    audit: 'drive.create',
    summary: 'Make a drive; the same again changes nothing.',
    answers: '200 and the drive',
    handle: async ({ principal, params, parts }) => {
      const name = params['name']!;
      if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(name))
        throw restErrors.REQUEST_INVALID({
          reason: 'a drive is named with letters, digits, ".", "_" and "-", at most 100',
        });
      const { tenant } = principal;
      return driveView(
        await parts.records.drives.create({
          tenant,
          name,
          bucket: parts.defaultBucket,
          prefix: `${tenant}/${name}/`,
        }),
      );
    },
  },
  {
    method: 'GET',
    url: '/v1/drives/:name',
    needs: 'viewer',
    of: 'tenant',
    summary: 'Read a drive.',
    answers: '200 and the drive',
    handle: async ({ principal, params, parts }) => {
      const name = checkName(params['name']!);
      const drive = await parts.reads.drive(principal.tenant, name);
      if (!drive) throw recordsErrors.DRIVE_NOT_FOUND({ drive: name });
      return driveView(drive);
    },
  },
  {
    method: 'DELETE',
    url: '/v1/drives/:name',
    needs: 'admin',
    of: 'tenant',
    audit: 'drive.delete',
    summary: 'Delete an empty drive.',
    answers: '200 {deleted}',
    handle: async ({ principal, params, parts }) => {
      const name = checkName(params['name']!);
      const deleted = await parts.records.drives.delete(principal.tenant, name);
      if (!deleted) throw recordsErrors.DRIVE_NOT_FOUND({ drive: name });
      return { deleted };
    },
  },
  {
    method: 'POST',
    url: '/v1/tokens',
    needs: 'operator',
    of: 'tenant',
    audit: 'token.create',
    summary: 'Make a token with which a browser may upload to one place for a short time.',
    answers: '201 {token, expiresAt}',
    body: {
      type: 'object',
      required: ['drive'],
      additionalProperties: false,
      properties: {
        drive: { type: 'string' },
        path: { type: 'string', description: 'One file.' },
        pathPrefix: { type: 'string', description: 'Everything below a folder.' },
        maxBytes: { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
        types: { type: 'array', minItems: 1, maxItems: 50, items: { type: 'string', maxLength: 255 } },
        expiresInS: { type: 'integer', minimum: 1, maximum: longestTokenS },
      },
    },
    handle: async ({ request, reply, principal, parts }) => {
      const { expiresInS = usualTokenS, ...scope } = request.body as Scope & { expiresInS?: number };
      const expiresAt = new Date(Date.now() + expiresInS * 1_000);
      reply.code(201).header('Cache-Control', 'no-store');
      return {
        token: parts.access.makeToken(principal, scope, expiresAt),
        expiresAt: expiresAt.toISOString(),
      };
    },
  },
];

function driveView({ id, name, createdAt }: { id: string; name: string; createdAt: Date }): object {
  return { id, name, createdAt: createdAt.toISOString() };
}
