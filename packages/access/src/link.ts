// Links: a signed address of one file, with which anybody may download it for a while.
import { accessErrors } from './errors.js';
import type { Principal } from './principal.js';
import { isAhead, type Signer } from './signature.js';
import { makerOf } from './token.js';

const names = ['tenant', 'expires', 'disposition', 'key', 'signature'] as const;

/** The part of an address that makes it a link. */
export function signLink(
  signer: Signer,
  principal: Principal,
  nodeId: string,
  expiresAt: Date,
  disposition: string,
): URLSearchParams {
  const { tenant } = principal;
  const expires = String(Math.floor(expiresAt.getTime() / 1_000));
  const maker = makerOf(principal);
  const signature = signer.sign('link', signed({ tenant, nodeId, expires, disposition, key: '', ...maker }));
  return new URLSearchParams({ tenant, expires, disposition, ...maker, signature });
}

/** The tenant whose file a link may read, and the key that made the link. */
export function openLink(
  signer: Signer,
  nodeId: string,
  query: Record<string, unknown>,
): { tenant: string; key: string | undefined } {
  const given = Object.fromEntries(
    names.map((name) => [name, typeof query[name] === 'string' ? query[name] : '']),
  ) as Record<(typeof names)[number], string>;
  if (!signer.isRight('link', signed({ ...given, nodeId }), given.signature))
    throw accessErrors.TOKEN_INVALID({ reason: 'its signature is wrong' });
  if (!isAhead(Number(given.expires))) throw accessErrors.TOKEN_EXPIRED();
  return { tenant: given.tenant, key: given.key === '' ? undefined : given.key };
}

interface Signed {
  tenant: string;
  nodeId: string;
  expires: string;
  disposition: string;
  key: string;
}

function signed({ tenant, nodeId, expires, disposition, key }: Signed): string {
  return [tenant, nodeId, expires, disposition, key].join('\n');
}
