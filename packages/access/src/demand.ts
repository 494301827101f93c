// What a route asks of whoever wants to use it.
import { accessErrors } from './errors.js';
import type { Principal } from './principal.js';
import { reaches, type Role } from './role.js';

export interface Demand {
  needs: Role | 'nobody';
  of: 'tenant' | 'installation';
  /** Whether an upload token is enough. */
  tokens?: boolean;
}

/** Refuses whoever may not use a route that asks for this. */
export function demand({ needs, of, tokens }: Demand, principal: Principal): void {
  if (needs === 'nobody') return;
  if (principal.scope && !tokens)
    throw accessErrors.FORBIDDEN({ reason: 'a token is for uploads only; use a key' });
  if (of === 'installation' && !principal.installation)
    throw accessErrors.FORBIDDEN({ reason: 'it concerns the whole installation; use a key of "*"' });
  if (!reaches(principal.role, needs))
    throw accessErrors.FORBIDDEN({ reason: `it needs a key with the role ${needs}` });
}
