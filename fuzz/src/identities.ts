// Who asks: a key of every role for the whole installation and for a tenant, wrong keys, and nobody.
import type { Operation } from './operations.js';

export interface Identity {
  name: string;
  headers: Record<string, string>;
  /** Without it the server knows nobody by that name. */
  role?: 'viewer' | 'operator' | 'admin';
  installation?: boolean;
}

const roles = ['viewer', 'operator', 'admin'] as const;
export const tenants = ['acme', 'other'] as const;
export const serviceKey = 'fuzz-service-key-0123456789';

export const keyHolders: Identity[] = ['*', ...tenants].flatMap((tenant) =>
  roles.map((role) => ({
    name: `${tenant === '*' ? 'installation' : tenant} ${role}`,
    headers: { Authorization: `Bearer ${keyOf(tenant, role)}` },
    role,
    installation: tenant === '*',
  })),
);

export const strangers: Identity[] = [
  { name: 'nobody', headers: {} },
  { name: 'a wrong key', headers: { Authorization: 'Bearer slk_0123456789_wrongwrongwrongwrong' } },
  { name: 'an odd header', headers: { Authorization: 'Basic \u00ff:x', 'X-Sluice-Key': '__proto__' } },
  { name: 'a forged session', headers: { Cookie: 'sluice_session=eyJrZXkiOiJhZG1pbiJ9.x' } },
  { name: 'a forged token', headers: { Authorization: 'Bearer slt_eyJ0ZW5hbnQiOiJhY21lIn0.x' } },
];

/** As SLUICE_KEYS wants them. */
export function configuredKeys(): string {
  return ['*', ...tenants]
    .flatMap((tenant) => roles.map((role) => `${tenant}:${role}=${keyOf(tenant, role)}`))
    .join(',');
}

export function admin(tenant?: string): Record<string, string> {
  return {
    Authorization: `Bearer ${keyOf('*', 'admin')}`,
    ...(tenant !== undefined && { 'X-Sluice-Tenant': tenant }),
  };
}

export function mayDo({ role, installation }: Identity, { needs, of }: Operation): boolean {
  if (needs === 'nobody') return true;
  if (role === undefined || (of === 'installation' && !installation)) return false;
  return roles.indexOf(role) >= roles.indexOf(needs);
}

/** Whether they may change anything at all. */
export function isPowerless({ role }: Identity): boolean {
  return role === undefined || role === 'viewer';
}

function keyOf(tenant: string, role: string): string {
  return `fuzz-${tenant === '*' ? 'all' : tenant}-${role}-0123456789`;
}
