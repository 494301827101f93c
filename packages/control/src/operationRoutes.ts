// Work that goes on after its request: what was started, how far it is, cancel.
import type { Principal } from '@sluice/access';
import { operationStates, type Operation } from '@sluice/operations';
import type { Route } from '@sluice/rest';
import { controlErrors } from './errors.js';
import type { ControlParts } from './parts.js';
import { given, pageOf, paging, someOf } from './query.js';
import { pageView } from './view.js';

export function operationRoutes({ operations }: ControlParts): Route[] {
  return [
    {
      method: 'GET',
      url: '/v1/operations',
      needs: 'viewer',
      of: 'tenant',
      summary: 'Operations, the newest first.',
      answers: '200 {items, next}',
      query: {
        state: { type: 'string', description: `Some of ${operationStates.join(', ')}, with commas.` },
        ...paging,
      },
      handle: async ({ query, principal }) => {
        const states = someOf(query, 'state', operationStates);
        return pageView(
          await operations.list({ ...pageOf(query), ...given({ states }), ...scopeOf(principal) }),
        );
      },
    },
    {
      method: 'GET',
      url: '/v1/operations/:id',
      needs: 'viewer',
      of: 'tenant',
      summary: 'How far an operation is.',
      answers: '200 and the operation',
      handle: async ({ params, principal }) =>
        found(params['id']!, await operations.get(params['id']!, scopeOf(principal))),
    },
    {
      method: 'POST',
      url: '/v1/operations/:id/cancel',
      needs: 'operator',
      of: 'tenant',
      audit: 'operation.cancel',
      summary: 'Stop an operation; what it has done stays done.',
      answers: '200 and the operation',
      handle: async ({ params, principal, note }) => {
        const id = params['id']!;
        note({ operation: id });
        const by = principal.key?.name ?? principal.via;
        return found(id, await operations.cancel(id, { ...scopeOf(principal), by }));
      },
    },
    {
      method: 'POST',
      url: '/v1/operations/:id/resume',
      needs: 'operator',
      of: 'tenant',
      audit: 'operation.resume',
      summary: 'Let an operation that failed go on where it stopped.',
      answers: '200 and the operation',
      handle: async ({ params, principal, note }) => {
        const id = params['id']!;
        note({ operation: id });
        const operation = found(id, await operations.get(id, scopeOf(principal)));
        if (!(await operations.resume(id, scopeOf(principal))))
          throw controlErrors.OPERATION_STATE({ id, state: operation.state });
        return operations.get(id);
      },
    },
  ];
}

/** Somebody of a tenant sees that tenant's operations. */
function scopeOf({ installation, tenant }: Principal): { tenant?: string } {
  return installation ? {} : { tenant };
}

function found(id: string, operation: Operation | null): Operation {
  if (!operation) throw controlErrors.OPERATION_NOT_FOUND({ id: id.slice(0, 100) });
  return operation;
}
