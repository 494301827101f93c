// One id through the whole flow.
import { nodeView, type Route } from '@sluice/rest';
import { controlErrors } from './errors.js';
import type { ControlParts } from './parts.js';
import { traceOf } from './trace.js';

export function traceRoutes(parts: ControlParts): Route[] {
  return [
    {
      method: 'GET',
      url: '/v1/trace/:id',
      needs: 'viewer',
      of: 'tenant',
      summary: 'Follow the id of an upload, a file, an event or a job through all of them.',
      answers: '200 {upload, node, events, jobs, bounds}',
      handle: async ({ params, principal }) => {
        const trace = await traceOf(parts, principal, params['id']!);
        if (!trace) throw controlErrors.TRACE_NOT_FOUND({ id: params['id']!.slice(0, 100) });
        const { upload, node } = trace;
        const record = upload?.record;
        return {
          ...trace,
          node: node && nodeView(node),
          upload: upload && {
            live: upload.live,
            record: record && {
              id: record.id,
              nodeId: record.nodeId,
              path: record.path,
              status: record.status,
              reason: record.reason ?? null,
              createdAt: record.createdAt.toISOString(),
              endedAt: record.endedAt?.toISOString() ?? null,
            },
          },
        };
      },
    },
  ];
}
