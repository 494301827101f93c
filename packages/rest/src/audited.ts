// A change, with its row in the audit log: begun before the change, so that none happens without one, and completed after it. A process
// that dies in between leaves a row without an outcome. Neither bodies nor headers get into it: only what the address names, and
// what a route notes.
import type { FastifyRequest } from 'fastify';
import type { Principal } from '@sluice/access';
import { failPoint, type Logger } from '@sluice/base';
import type { AuditDetails, AuditOutcome, Records } from '@sluice/records';
import { addressOf } from './address.js';
import { answerFor } from './errors.js';
import type { Call, Route } from './route.js';

const longestTarget = 512;
const mostDetails = 16;
const longestName = 64;
const longestValue = 256;

export interface Auditing {
  records: Pick<Records, 'audit'>;
  logger: Logger;
  trustProxy?: boolean;
}

export async function audited(
  auditing: Auditing,
  route: Route,
  action: string,
  call: Call,
): Promise<unknown> {
  const { records, logger } = auditing;
  const details: AuditDetails = {};
  const noting: Call = { ...call, note: (more) => add(details, more) };
  const row = await records.audit.begin({
    tenant: tenantOf(route, noting),
    action,
    target: writable(Object.values(call.params).join('/'), longestTarget),
    ...actorOf(call.principal),
    ...whereOf(auditing, call.request),
  });
  failPoint('audit.begun');
  const complete = async (outcome: AuditOutcome, status: number): Promise<void> => {
    failPoint('audit.changed');
    // The change has happened, or has not: an answer that says otherwise would be wrong. The row stays without an outcome.
    await records.audit
      .complete(row, { outcome, status, details })
      .catch((err: unknown) => logger.error({ err, row }, 'a row of the audit log was not completed'));
  };
  try {
    const answer = await route.handle(noting);
    await complete('done', call.reply.statusCode);
    return answer;
  } catch (error) {
    const { status } = answerFor(error);
    await complete(status >= 500 ? 'failed' : 'refused', status);
    throw error;
  }
}

function tenantOf(route: Route, call: Call): string | undefined {
  if (route.of === 'installation') return undefined;
  return route.concerns ? route.concerns(call) : call.principal.tenant;
}

function actorOf({ key, via }: Principal): { actor: string; actorName: string; via: string } {
  return { actor: key?.id ?? via, actorName: key?.name ?? '', via };
}

function whereOf({ trustProxy }: Auditing, request: FastifyRequest) {
  return { address: addressOf(request, trustProxy), requestId: request.id };
}

function add(details: AuditDetails, more: AuditDetails): void {
  for (const [name, value] of Object.entries(more)) {
    if (Object.keys(details).length >= mostDetails) return;
    details[writable(name, longestName)] = typeof value === 'string' ? writable(value, longestValue) : value;
  }
}

/** What can stand in a row: short, without control characters and halves of characters, which PostgreSQL refuses in part. */
function writable(text: string, longest: number): string {
  return text.slice(0, longest).replace(/[\p{Cc}\p{Cs}]/gu, '\ufffd');
}
