// What must hold for every answer, whatever was asked and whoever asked.
import type { Crafted } from './craft.js';
import { mayDo, type Identity } from './identities.js';
import type { Outcome } from './send.js';

/** A sentence for each rule that was broken, in words that are the same for the same defect. */
export function judge(crafted: Crafted, identity: Identity, outcome: Outcome): string[] {
  switch (outcome.kind) {
    case 'hang':
      return ['no answer came in time'];
    case 'cut':
      // A head that is too long is refused before anybody knows its method: with a body, which the answer to a HEAD cannot have.
      if (crafted.method === 'HEAD' && outcome.reason === 'HPE_CLOSED_CONNECTION') return [];
      return [`the connection was cut without an answer (${outcome.reason})`];
    case 'stream':
      return unauthorised(crafted, identity, 200);
    case 'answer': {
      const { status, headers, text } = outcome;
      const broken = unauthorised(crafted, identity, status);
      // Nothing behind the server is down here, so not even 503 has a reason.
      if (status >= 500) broken.push(`answered ${status} ${codeIn(text)}`);
      if (status >= 400 && crafted.method !== 'HEAD') broken.push(...shapeOf(text, headers));
      if (headers['x-injected'] !== undefined) broken.push('a header could be injected');
      return broken;
    }
  }
}

/** A success of somebody who may not have it. Only where the method is the one that the declaration is about. */
function unauthorised({ operation, method }: Crafted, identity: Identity, status: number): string[] {
  const isSuccess = status >= 200 && status < 300;
  if (!isSuccess || method !== operation.method || operation.needs === 'nobody') return [];
  if (operation.hasOtherWays && identity.role === undefined) return [];
  return mayDo(identity, operation) ? [] : [`succeeded for ${identity.name}, who lacks the role`];
}

/** The stable shape of refusals. */
function shapeOf(text: string, headers: Record<string, unknown>): string[] {
  if (!String(headers['content-type']).startsWith('application/json')) return ['a refusal is not JSON'];
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return ['a refusal cannot be parsed'];
  }
  const { error } = (body ?? {}) as { error?: Record<string, unknown> };
  if (typeof error !== 'object' || error === null) return ['a refusal has no "error"'];
  const broken: string[] = [];
  if (!/^[A-Z][A-Z0-9_]+$/.test(String(error['code']))) broken.push('a refusal has no stable code');
  if (typeof error['message'] !== 'string' || error['message'] === '')
    broken.push('a refusal has no message');
  if (typeof error['retryable'] !== 'boolean') broken.push('a refusal does not say whether to retry');
  const { details = {} } = error;
  if (typeof details !== 'object' || details === null) broken.push('the details of a refusal are no object');
  const known = new Set(['code', 'message', 'retryable', 'details', 'requestId']);
  const unknown = Object.keys(error).filter((name) => !known.has(name));
  if (unknown.length > 0) broken.push(`a refusal has unknown fields: ${unknown.join(', ')}`);
  if (/node_modules|\n\s+at |\.js:\d+|postgres:\/\/|redis:\/\//.test(text))
    broken.push('a refusal tells about the inside');
  return broken;
}

function codeIn(text: string): string {
  return /"code":"([A-Z0-9_]+)"/.exec(text)?.[1] ?? '';
}
