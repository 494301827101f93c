// Keys: made, listed, rotated and revoked over HTTP. The text of a key is in the answer that made it, and nowhere else. An admin of a
// tenant has to do with the keys of that tenant only; to whom others do not exist.
import { accessErrors, checkTenant, installation, newKey, newSecret, roles, type Role } from '@sluice/access';
import { recordsErrors, type KeyRecord } from '@sluice/records';
import { restErrors } from './errors.js';
import { pageLimit, searched } from './page.js';
import type { Call, JsonSchema, Route } from './route.js';

const longestS = 10 * 365 * 86_400;
const longestGraceS = 30 * 86_400;
const usualGraceS = 86_400;
const firstDrive = 'main';
const shapeOfId = /^[0-9a-f]{16}$/;

const seconds = (most: number, least = 0): JsonSchema => ({
  type: 'integer',
  minimum: least,
  maximum: most,
});

export const keyRoutes: Route[] = [
  {
    method: 'GET',
    url: '/v1/keys',
    needs: 'admin',
    of: 'tenant',
    summary: 'List the keys, those that have ended among them; never their texts.',
    answers: '200 {items, next}',
    query: {
      tenant: { type: 'string', description: 'Only of this tenant; for keys of the installation.' },
      cursor: { type: 'string', description: 'The `next` of the page before.' },
      limit: { type: 'integer', minimum: 1, maximum: 1_000 },
    },
    handle: async ({ principal, query, parts }) => {
      const limit = pageLimit(query['limit']);
      const { cursor } = query;
      if (cursor !== undefined && !shapeOfId.test(cursor))
        throw restErrors.REQUEST_INVALID({ reason: 'cursor must be the `next` of a page' });
      const tenant = principal.installation ? query['tenant'] : principal.tenant;
      const keys = await parts.records.keys.list({
        limit,
        ...(tenant !== undefined && { tenant: searched(tenant) }),
        ...(cursor !== undefined && { after: cursor }),
      });
      return { items: keys.map(keyView), next: keys.length === limit ? keys.at(-1)!.id : null };
    },
  },
  {
    method: 'POST',
    url: '/v1/keys',
    needs: 'admin',
    of: 'tenant',
    audit: 'key.create',
    concerns: ({ request, principal }) => {
      // Whoever asks for a key of another tenant is refused, and writes into no log but the own.
      if (!principal.installation) return principal.tenant;
      const tenant = (request.body as NewKeyBody).tenant ?? principal.tenant;
      return tenant === installation ? undefined : tenant;
    },
    summary: 'Make a key. Its text is in this answer and is never shown again.',
    answers: '201 {key, id, tenant, role, name, …}',
    body: {
      type: 'object',
      required: ['name', 'role'],
      additionalProperties: false,
      properties: {
        name: { type: 'string', minLength: 1, maxLength: 100, description: 'Who or what it is for.' },
        role: { enum: [...roles] },
        tenant: {
          type: 'string',
          maxLength: 100,
          description: '"*" for the whole installation; the own tenant without it.',
        },
        expiresInS: seconds(longestS, 1),
      },
    },
    handle: async (call) => {
      const { request, reply, principal, parts, note } = call;
      const { name, role, expiresInS, ...asked } = request.body as NewKeyBody;
      const tenant = ownTenant(call, asked.tenant);
      const { id, text, digest } = newKey();
      note({ key: id, tenant, role, name });
      const key = await parts.records.keys.create({
        ...{ id, tenant, role, name, digest },
        createdBy: principal.key?.id ?? principal.via,
        configured: parts.access.isConfigured,
        ...(expiresInS !== undefined && { expiresInMs: expiresInS * 1_000 }),
      });
      await parts.ring?.changed();
      if (tenant !== installation) await makeFirstDrive(call, tenant);
      reply.code(201).header('Cache-Control', 'no-store');
      return { key: text, ...keyView(key) };
    },
  },
  {
    method: 'POST',
    url: '/v1/keys/:id/rotate',
    needs: 'admin',
    of: 'tenant',
    audit: 'key.rotate',
    concerns: ({ principal }) => (principal.installation ? undefined : principal.tenant),
    summary: 'Give a key another text; the one before stays good for a while, or with graceS 0 ends now.',
    answers: '200 {key, oldUntil, …}',
    body: {
      type: ['object', 'null'],
      additionalProperties: false,
      properties: { graceS: seconds(longestGraceS) },
    },
    handle: async (call) => {
      const { request, reply, params, parts, note } = call;
      const { graceS = usualGraceS } = (request.body ?? {}) as { graceS?: number };
      const { text, digest } = newSecret(keyId(params));
      note({ graceS });
      const rotation = { id: params['id']!, digest, graceMs: graceS * 1_000, ...onlyOwn(call) };
      const key = await parts.records.keys.rotate(rotation);
      await parts.ring?.changed();
      reply.header('Cache-Control', 'no-store');
      return { key: text, ...keyView(key) };
    },
  },
  {
    method: 'DELETE',
    url: '/v1/keys/:id',
    needs: 'admin',
    of: 'tenant',
    audit: 'key.revoke',
    concerns: ({ principal }) => (principal.installation ? undefined : principal.tenant),
    summary: 'Revoke a key: within five seconds it opens nothing, nor does what was made with it.',
    answers: '200 and the key',
    handle: async (call) => {
      const { params, parts } = call;
      const key = await parts.records.keys.revoke({
        id: keyId(params),
        configuredAdmin: parts.access.hasConfiguredAdmin,
        ...onlyOwn(call),
      });
      await parts.ring?.changed();
      return keyView(key);
    },
  },
];

interface NewKeyBody {
  name: string;
  role: Role;
  tenant?: string;
  expiresInS?: number;
}

/** The tenant that a new key is for. Nobody makes a key that reaches further than their own. */
function ownTenant({ principal }: Call, asked: string | undefined): string {
  if (!principal.installation) {
    if (asked !== undefined && asked !== principal.tenant)
      throw accessErrors.FORBIDDEN({ reason: 'only keys of the own tenant can be made with this key' });
    return principal.tenant;
  }
  if (asked === undefined)
    throw restErrors.REQUEST_INVALID({
      reason: 'say whose key it is: "tenant" is a name, or "*" for the whole installation',
    });
  return asked === installation ? asked : checkTenant(asked);
}

function onlyOwn({ principal }: Call): { tenant?: string } {
  return principal.installation ? {} : { tenant: principal.tenant };
}

function keyId(params: Call['params']): string {
  const id = params['id']!;
  if (!shapeOfId.test(id)) throw recordsErrors.KEY_NOT_FOUND({ key: id.slice(0, 40) });
  return id;
}

/** A tenant that has never had a drive gets the one that the examples use. What is to be written is asked of the records, not of a copy. */
async function makeFirstDrive({ parts }: Call, tenant: string): Promise<void> {
  const { drives } = parts.records;
  if ((await drives.list(tenant, { limit: 1 })).length > 0) return;
  const prefix = `${tenant}/${firstDrive}/`;
  await drives.create({ tenant, name: firstDrive, bucket: parts.defaultBucket, prefix });
}

function keyView({ createdAt, expiresAt, revokedAt, usedAt, oldUntil, ...key }: KeyRecord): object {
  return {
    ...key,
    createdAt: createdAt.toISOString(),
    expiresAt: expiresAt?.toISOString() ?? null,
    revokedAt: revokedAt?.toISOString() ?? null,
    usedAt: usedAt?.toISOString() ?? null,
    oldUntil: oldUntil?.toISOString() ?? null,
  };
}
