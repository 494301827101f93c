// Links: a signed address of one file, with which anybody may download it for a while.
import { accessErrors } from './errors.js';
import { isAhead, type Signer } from './signature.js';

/** The part of an address that makes it a link. */
export function signLink(
  signer: Signer,
  tenant: string,
  nodeId: string,
  expiresAt: Date,
  disposition: string,
): URLSearchParams {
  const expires = String(Math.floor(expiresAt.getTime() / 1_000));
  const signature = signer.sign('link', [tenant, nodeId, expires, disposition].join('\n'));
  return new URLSearchParams({ tenant, expires, disposition, signature });
}

/** The tenant whose file a link may read. */
export function openLink(signer: Signer, nodeId: string, query: Record<string, unknown>): string {
  const [tenant, expires, disposition, signature] = ['tenant', 'expires', 'disposition', 'signature'].map(
    (name) => {
      const value = query[name];
      return typeof value === 'string' ? value : '';
    },
  ) as [string, string, string, string];
  if (!signer.isRight('link', [tenant, nodeId, expires, disposition].join('\n'), signature))
    throw accessErrors.TOKEN_INVALID({ reason: 'its signature is wrong' });
  if (!isAhead(Number(expires))) throw accessErrors.TOKEN_INVALID({ reason: 'it has expired' });
  return tenant;
}
