// Webhooks over HTTP. An admin looks after those of their tenant; with a key of the installation and `?tenant=*`, after those that are
// told of everything. Secrets are in the answer that makes them and in no other.
import { accessErrors } from '@sluice/access';
import type { Call, JsonSchema, Route } from '@sluice/rest';
import { everything, type WebhookDraft, type Webhooks } from './webhooks.js';

const largestPage = 100;
const usualGraceS = 86_400;
const longestGraceS = 30 * 86_400;

const url: JsonSchema = { type: 'string', minLength: 1, maxLength: 2_048 };
const topics: JsonSchema = {
  type: 'array',
  minItems: 1,
  maxItems: 50,
  items: { type: 'string', minLength: 1, maxLength: 200 },
  description: 'repository.documents.created, repository.*, jobs.dead, sluice.alerts.*, *: see the guide.',
};
const active: JsonSchema = { type: 'boolean' };
const whose: Record<string, JsonSchema> = {
  tenant: {
    enum: [everything],
    description: 'Those that are told of everything; for keys of the installation.',
  },
};
const admin = { needs: 'admin', of: 'tenant' } as const;

export function webhookRoutes(webhooks: Webhooks): Route[] {
  return [
    {
      method: 'GET',
      url: '/v1/webhooks',
      summary: 'List the webhooks, page by page.',
      answers: '200 {items, next}',
      ...admin,
      query: { ...whose, after: { type: 'string', description: 'The `next` of the page before.' } },
      handle: async (call) => {
        const { after } = call.query;
        const page = { limit: largestPage, ...(after !== undefined && { after }) };
        const items = await webhooks.list(tenantOf(call), page);
        return { items, next: items.length === largestPage ? items.at(-1)!.id : null };
      },
    },
    {
      method: 'POST',
      url: '/v1/webhooks',
      summary: 'Make a webhook. The secret that signs its deliveries is shown once, here.',
      answers: '201 and the webhook with its secret',
      ...admin,
      audit: 'webhook.create',
      query: whose,
      body: {
        type: 'object',
        required: ['url', 'topics'],
        additionalProperties: false,
        properties: { url, topics, active },
      },
      handle: async (call) => {
        const draft = call.request.body as Omit<WebhookDraft, 'tenant'>;
        const made = await webhooks.create({ ...draft, tenant: tenantOf(call) });
        call.note({ webhook: made.id });
        call.reply
          .code(201)
          .header('Cache-Control', 'no-store')
          .header('Location', `/v1/webhooks/${made.id}`);
        return made;
      },
    },
    {
      method: 'GET',
      url: '/v1/webhooks/:id',
      summary: 'Read a webhook.',
      answers: '200 and the webhook',
      ...admin,
      query: whose,
      handle: (call) => webhooks.get(tenantOf(call), idOf(call)),
    },
    {
      method: 'PATCH',
      url: '/v1/webhooks/:id',
      summary: 'Change where a webhook leads and what it is told, or switch it off and on.',
      answers: '200 and the webhook',
      ...admin,
      audit: 'webhook.update',
      query: whose,
      body: { type: 'object', additionalProperties: false, properties: { url, topics, active } },
      handle: (call) => {
        call.note({ webhook: idOf(call) });
        return webhooks.update(tenantOf(call), idOf(call), call.request.body as Partial<WebhookDraft>);
      },
    },
    {
      method: 'DELETE',
      url: '/v1/webhooks/:id',
      summary: 'Delete a webhook; what waits for it is not delivered any more.',
      answers: '204',
      ...admin,
      audit: 'webhook.delete',
      query: whose,
      handle: async (call) => {
        call.note({ webhook: idOf(call) });
        await webhooks.delete(tenantOf(call), idOf(call));
        return call.reply.code(204).send();
      },
    },
    {
      method: 'POST',
      url: '/v1/webhooks/:id/rotate',
      summary: 'Make a new secret, shown once, here. The one before signs as well for a while.',
      answers: '200 and the webhook with its secret',
      ...admin,
      audit: 'webhook.rotate',
      query: whose,
      body: {
        type: ['object', 'null'],
        additionalProperties: false,
        properties: { graceS: { type: 'integer', minimum: 0, maximum: longestGraceS, default: usualGraceS } },
      },
      handle: (call) => {
        const { graceS = usualGraceS } = (call.request.body ?? {}) as { graceS?: number };
        call.note({ webhook: idOf(call) });
        call.reply.header('Cache-Control', 'no-store');
        return webhooks.rotate(tenantOf(call), idOf(call), graceS * 1_000);
      },
    },
    {
      method: 'POST',
      url: '/v1/webhooks/:id/test',
      summary: 'Deliver an event that tells of nothing.',
      answers: '202 {delivery}',
      ...admin,
      audit: 'webhook.test',
      query: whose,
      handle: async (call) => {
        call.note({ webhook: idOf(call) });
        const delivery = await webhooks.test(tenantOf(call), idOf(call));
        call.reply.code(202);
        return { delivery };
      },
    },
    {
      method: 'GET',
      url: '/v1/webhooks/:id/deliveries',
      summary: 'How the last hundred deliveries went, the latest first.',
      answers: '200 {items, next}',
      ...admin,
      query: whose,
      handle: async (call) => ({ items: await webhooks.deliveries(tenantOf(call), idOf(call)), next: null }),
    },
  ];
}

function tenantOf({ principal, query }: Call): string {
  if (query['tenant'] === undefined) return principal.tenant;
  if (query['tenant'] === everything && principal.installation) return everything;
  const reason = 'webhooks of all tenants are for keys of the installation';
  throw accessErrors.FORBIDDEN({ reason });
}

function idOf({ params }: Call): string {
  return params['id']!;
}
