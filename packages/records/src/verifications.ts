/**
 * What other services found out about files. A result is taken in once, however often it is delivered: it is known by the id that
 * its sender gave it or, without one, by the SHA-256 of everything it says.
 */
import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import { canonicalJson, problemOf, type JsonObject } from './canonicalJson.js';
import type { OnChange } from './changes.js';
import type { Database } from './database.js';
import { pageSize } from './drives.js';
import { recordsErrors } from './errors.js';
import { checkOptionalText, checkText, isNodeId } from './metadata.js';
import { build, type VerificationRow } from './schema.js';

export const MAX_RESULT_ID_BYTES = 200;
export const MAX_DECISION_BYTES = 4_096;
export const MAX_VERIFICATION_METADATA_BYTES = 65_536;

export interface NewVerification {
  nodeId: string;
  resultId?: string;
  userId?: string;
  result: 'approved' | 'rejected';
  /** 0 to 100. */
  score?: number;
  decision?: string;
  /** Any JSON object. */
  metadata?: JsonObject;
}

export interface TakenVerification {
  receivedAt: Date;
  /** It was delivered before, and nothing has changed now. */
  replayed: boolean;
}

export interface Verification {
  /** Under which it is known here; a list goes on behind it. */
  id: string;
  resultId: string | undefined;
  userId: string | undefined;
  result: 'approved' | 'rejected';
  score: number | undefined;
  decision: string | undefined;
  metadata: JsonObject;
  /** Of the file that was looked at. */
  version: number;
  receivedAt: Date;
}

interface Answer {
  receivedAt: string;
  replayed: boolean;
  /** Null when the file is gone by now. */
  tenant: string | null;
  drive: string | null;
  path: string | null;
}

const OWN_ID = 'result:';

export class Verifications {
  constructor(
    private readonly database: Database,
    private readonly nudge: () => void,
    private readonly onChange: OnChange,
  ) {}

  /** Throws NODE_NOT_FOUND without such a file, RESULT_CONFLICT when the id was used for something else, VALUE_INVALID. */
  async take(verification: NewVerification): Promise<TakenVerification> {
    const said = checked(verification);
    const { resultId, ...rest } = said;
    const digest = createHash('sha256').update(canonicalJson(rest)).digest('hex');
    const id = resultId === undefined ? `sha256:${digest}` : OWN_ID + resultId;
    const answer = await this.database.call<Answer>('sluice_verify', { ...said, id, digest });
    const { nodeId } = said;
    // Also when it was there already: whoever delivered it before may have died before it could tell.
    this.nudge();
    const { tenant, drive, path } = answer;
    if (tenant !== null && drive !== null && path !== null)
      await this.onChange({ what: 'file', tenant, drive, nodeId, path });
    return { receivedAt: new Date(answer.receivedAt), replayed: answer.replayed };
  }

  /** Of one file, the latest first, behind the one that ended the page before. Nothing comes behind one that is not of this file. */
  async list(nodeId: string, page: { after?: string; limit?: number } = {}): Promise<Verification[]> {
    if (!isNodeId(nodeId)) return [];
    const { after } = page;
    let question = build
      .selectFrom('verifications')
      .selectAll()
      .where('node_id', '=', nodeId)
      .orderBy('received_at', 'desc')
      .orderBy('id', 'desc')
      .limit(pageSize(page.limit));
    // Its time is read here: it is finer than a Date could say.
    if (after !== undefined)
      question = question.where(
        sql<boolean>`(received_at, id) < (SELECT received_at, id FROM verifications WHERE id = ${after} AND node_id = ${nodeId})`,
      );
    return (await this.database.ask('list verifications', question)).map(toVerification);
  }
}

/** The same result in one form, so that it has one digest. */
function checked({
  nodeId,
  resultId,
  userId,
  result,
  score,
  decision,
  metadata = {},
}: NewVerification): NewVerification {
  if (!isNodeId(nodeId)) throw recordsErrors.NODE_NOT_FOUND({ node: nodeId.slice(0, 80) });
  if (result !== 'approved' && result !== 'rejected') refuse('result', 'it is neither approved nor rejected');
  if (score !== undefined && !(score >= 0 && score <= 100)) refuse('score', 'it is no number from 0 to 100');
  checkOptionalText('userId', userId);
  if (resultId !== undefined) checkText('resultId', resultId, MAX_RESULT_ID_BYTES);
  if (decision !== undefined) checkProse('decision', decision, MAX_DECISION_BYTES);
  checkJson('metadata', metadata, MAX_VERIFICATION_METADATA_BYTES);
  return {
    nodeId: nodeId.toLowerCase(),
    ...(resultId !== undefined && { resultId }),
    ...(userId !== undefined && { userId }),
    result,
    ...(score !== undefined && { score }),
    ...(decision !== undefined && { decision }),
    metadata,
  };
}

/** Text that may have line breaks, but nothing that PostgreSQL could not keep. */
function checkProse(field: string, text: string, maxBytes: number): void {
  if (Buffer.byteLength(text) > maxBytes) refuse(field, `it has more than ${maxBytes} bytes`);
  const problem = problemOf(text);
  if (problem !== undefined) refuse(field, problem);
}

function checkJson(field: string, value: JsonObject, maxBytes: number): void {
  const problem = problemOf(value);
  if (problem !== undefined) refuse(field, problem);
  if (Buffer.byteLength(canonicalJson(value)) > maxBytes) refuse(field, `it has more than ${maxBytes} bytes`);
}

function refuse(field: string, reason: string): never {
  throw recordsErrors.VALUE_INVALID({ field, reason });
}

function toVerification(row: VerificationRow): Verification {
  return {
    id: row.id,
    resultId: row.id.startsWith(OWN_ID) ? row.id.slice(OWN_ID.length) : undefined,
    userId: row.user_id ?? undefined,
    result: row.result,
    score: row.score ?? undefined,
    decision: row.decision ?? undefined,
    metadata: row.metadata,
    version: row.version,
    receivedAt: new Date(row.received_at),
  };
}
