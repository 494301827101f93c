// Tenants are names. Two of them mean something: the one that everything belongs to when nobody says otherwise, and the mark for all of
// them together.
import { accessErrors } from './errors.js';

export const defaultTenant = 'default';
/** Where a key's tenant stands: the key is for the whole installation. */
export const installation = '*';

const shape = /^[A-Za-z0-9._-]{1,100}$/;

export function checkTenant(tenant: string): string {
  if (!shape.test(tenant)) throw accessErrors.TENANT_INVALID({ tenant: tenant.slice(0, 100) });
  return tenant;
}
