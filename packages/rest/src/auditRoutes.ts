// The audit log, newest first.
import type { AuditEntry } from '@sluice/records';
import { restErrors } from './errors.js';
import { pageLimit, searched } from './page.js';
import type { Route } from './route.js';

export const auditRoutes: Route[] = [
  {
    method: 'GET',
    url: '/v1/audit',
    needs: 'admin',
    of: 'tenant',
    summary:
      'What was changed, by whom and how it ended, newest first; of the own tenant, or of all with a key of "*".',
    answers:
      '200 {items, next}; an outcome of null is a change under way, or one whose process died in the middle',
    query: {
      action: { type: 'string', description: 'Only this, for example key.create.' },
      actor: { type: 'string', description: 'Only what this key did, by its id.' },
      tenant: { type: 'string', description: 'Only of this tenant; for keys of the installation.' },
      after: { type: 'string', description: 'The `next` of the page before.' },
      limit: { type: 'integer', minimum: 1, maximum: 1_000 },
    },
    handle: async ({ principal, query, parts }) => {
      const limit = pageLimit(query['limit']);
      const { action, actor, after } = query;
      if (after !== undefined && !/^\d{1,15}$/.test(after))
        throw restErrors.REQUEST_INVALID({ reason: 'after must be the `next` of a page' });
      const tenant = principal.installation ? query['tenant'] : principal.tenant;
      const entries = await parts.records.audit.list({
        limit,
        ...(tenant !== undefined && { tenant: searched(tenant) }),
        ...(action !== undefined && { action: searched(action) }),
        ...(actor !== undefined && { actor: searched(actor) }),
        ...(after !== undefined && { before: Number(after) }),
      });
      const last = entries.length === limit ? entries.at(-1) : undefined;
      return { items: entries.map(entryView), next: last ? String(last.seq) : null };
    },
  },
];

function entryView({ seq: _, at, endedAt, ...entry }: AuditEntry): object {
  return { ...entry, at: at.toISOString(), endedAt: endedAt?.toISOString() ?? null };
}
