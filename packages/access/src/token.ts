// Upload tokens: a permission to upload to one place for a short time, signed, for browsers that must not have a key.
import { accessErrors } from './errors.js';
import type { Principal, Scope } from './principal.js';
import { checkedScope } from './scope.js';
import { isAhead, type Signer } from './signature.js';

export interface TokenBody extends Scope {
  tenant: string;
  /** The key that made it, if that is one of the records: the token ends with it. */
  key?: string;
  /** In seconds since 1970. */
  expires: number;
}

const mark = 'slt_';

export function isToken(text: string): boolean {
  return text.startsWith(mark);
}

export function makeToken(signer: Signer, principal: Principal, scope: Scope, expiresAt: Date): string {
  if (principal.scope) throw accessErrors.FORBIDDEN({ reason: 'a token cannot make tokens' });
  const body: TokenBody = {
    ...checkedScope(scope),
    tenant: principal.tenant,
    ...makerOf(principal),
    expires: Math.floor(expiresAt.getTime() / 1_000),
  };
  const text = Buffer.from(JSON.stringify(body)).toString('base64url');
  return `${mark}${text}.${signer.sign('token', text)}`;
}

export function openToken(
  signer: Signer,
  token: string,
): { tenant: string; key: string | undefined; scope: Scope } {
  const body = token.slice(mark.length);
  const text = body.slice(0, Math.max(0, body.indexOf('.')));
  const signature = body.slice(text.length + 1);
  if (!signer.isRight('token', text, signature))
    throw accessErrors.TOKEN_INVALID({ reason: 'its signature is wrong' });
  const { tenant, key, expires, ...scope } = JSON.parse(
    Buffer.from(text, 'base64url').toString(),
  ) as TokenBody;
  if (!isAhead(expires)) throw accessErrors.TOKEN_EXPIRED();
  return { tenant, key, scope };
}

/** Configured keys have no id that lasts: what they made ends with the last key of their tenant. */
export function makerOf({ key }: Principal): { key?: string } {
  return key === undefined || key.id.startsWith('configured-') ? {} : { key: key.id };
}
