// Who is asking: what every route gets to know about whoever sent a request, however they proved it.
import type { Limits } from '@sluice/records';
import type { Role } from './role.js';

export interface Principal {
  /** Whose things are meant. With a key of the installation, the one in X-Sluice-Tenant, or `default`. */
  tenant: string;
  /** Whether they may look beyond their tenant: at queues, workers, Redis, keys of others. */
  installation: boolean;
  role: Role;
  /** The key behind it; not its text. */
  key?: { id: string; name: string };
  via: Via;
  /** How long a browser is signed in, if it is. */
  session?: { id: string; expiresAt: Date };
  /** What a token limits its holder to. */
  scope?: Scope;
  rules: TenantRules;
}

/** `open` is everybody on this machine while there are no keys; `nobody` is whoever a route asks nothing of. */
export type Via = 'key' | 'session' | 'token' | 'link' | 'open' | 'nobody';

export interface Scope {
  drive: string;
  /** One file, or everything below a folder. */
  path?: string;
  pathPrefix?: string;
  maxBytes?: number;
  types?: string[];
}

export interface TenantRules extends Limits {
  /** Media types that are taken, `image/*` for all of a kind; all types unless stated. */
  types?: string[];
}

/** Whom what they make belongs to: the key, by the name that people know it by. A token's things are those of the key that made it. */
export function ownerOf({ key }: Pick<Principal, 'key'>): string | undefined {
  return key?.name;
}

export const nobody: Principal = {
  tenant: '',
  installation: false,
  role: 'viewer',
  via: 'nobody',
  rules: {},
};
