// Results that other services report about files, and what is known of one file. The address, the body and the answer are those of the
// pipeline that this replaces, so that its services need no change.
import type { JsonObject, Verification } from '@sluice/records';
import { restErrors } from './errors.js';
import { ownNode } from './nodeRoutes.js';
import { pageLimit } from './page.js';
import type { Route } from './route.js';

const text = (maxLength: number) => ({ type: 'string', minLength: 1, maxLength });
const largestPage = 1_000;
/** Of the id of a result, which is the cursor: longer ones are nobody's. */
const longestCursor = 400;

interface Report {
  documentId: string;
  resultId?: string;
  userId?: string;
  verificationResult: 'approved' | 'rejected';
  score?: number;
  decision?: string;
  metadata?: JsonObject;
}

export const verificationRoutes: Route[] = [
  {
    method: 'POST',
    url: '/internal/verification/result',
    summary: 'Report the result of a verification. The same result may be reported any number of times.',
    answers: '200 {success, message, timestamp}',
    headers: { 'X-Service-Key': 'One of SLUICE_SERVICE_KEYS.' },
    needs: 'nobody',
    of: 'installation',
    serviceKey: true,
    // What is reported is kept with the file, with its time: a list of its own.
    audit: false,
    body: {
      type: 'object',
      required: ['documentId', 'verificationResult'],
      properties: {
        documentId: {
          type: 'string',
          pattern: '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$',
          description: 'The id of the file.',
        },
        resultId: {
          ...text(200),
          description: 'Makes repetitions recognisable; without it the whole body does.',
        },
        userId: text(255),
        verificationResult: { enum: ['approved', 'rejected'] },
        score: { type: 'number', minimum: 0, maximum: 100 },
        decision: { type: 'string', maxLength: 4_000 },
        metadata: { type: 'object' },
      },
    },
    handle: async ({ request, parts }) => {
      const { documentId, resultId, userId, verificationResult, score, decision, metadata } =
        request.body as Report;
      const { receivedAt } = await parts.records.verifications.take({
        nodeId: documentId,
        result: verificationResult,
        ...(resultId !== undefined && { resultId }),
        ...(userId !== undefined && { userId }),
        ...(score !== undefined && { score }),
        ...(decision !== undefined && { decision }),
        ...(metadata !== undefined && { metadata }),
      });
      return {
        success: true,
        message: 'Verification result received',
        timestamp: receivedAt.toISOString(),
      };
    },
  },
  {
    method: 'GET',
    url: '/v1/nodes/:id/verifications',
    summary: 'What was found out about a file, the latest first, also about bytes that were replaced.',
    answers: '200 {items, next}',
    needs: 'viewer',
    of: 'tenant',
    query: {
      limit: { type: 'integer', minimum: 1, maximum: largestPage },
      cursor: { type: 'string', description: 'The `next` of the page before.' },
    },
    handle: async (call) => {
      const { query, parts } = call;
      const limit = pageLimit(query['limit']);
      const after = placeOf(query['cursor']);
      // Whose file it is may come from a copy: it is told of when it goes, and never changes its tenant. The results are read
      // directly: they are asked for seldom, by people who wait for the next one.
      const node = await ownNode(call);
      const page = { limit, ...(after !== undefined && { after }) };
      const results = await parts.records.verifications.list(node.id, page);
      const last = results.length === limit ? results.at(-1) : undefined;
      return { items: results.map(shown), next: last ? Buffer.from(last.id).toString('base64url') : null };
    },
  },
];

/** The id of the result that ended the page before. Those that come meanwhile are newer: none is told twice, none is left out. */
function placeOf(cursor: string | undefined): string | undefined {
  if (cursor === undefined) return undefined;
  const id = Buffer.from(cursor.slice(0, longestCursor), 'base64url').toString();
  if (!/^(result|sha256):[^\0]+$/s.test(id))
    throw restErrors.REQUEST_INVALID({ reason: 'the cursor is not the `next` of a page' });
  return id;
}

function shown({ id: _, result, receivedAt, ...rest }: Verification): object {
  return { verificationResult: result, ...rest, receivedAt: receivedAt.toISOString() };
}
