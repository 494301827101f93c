// Who is asking, and what they may do.
//
//   key      belongs to a tenant, or to the whole installation, and has a role. Several keys may be valid at once, so that
//            they can be changed without an outage.
//   token    signed by us, for browsers: may upload to one place, up to a size, for a short time, and look after those uploads
//   link     a signed address of one file: may download it for a short time
//   nobody   without keys there is one tenant, and only this machine is answered
//
// Keys are kept and compared as SHA-256 digests, all of them every time: neither the length of a key nor where it differs can be
// measured. A tenant whose last key was taken away is nobody any more: its tokens and links end with the keys.
import { timingSafeEqual } from 'node:crypto';
import { accessErrors } from './errors.js';
import { openLink, signLink } from './link.js';
import type { Principal, Scope, TenantRules } from './principal.js';
import { reaches, type Role } from './role.js';
import { sha256, Signer } from './signature.js';
import { checkTenant, defaultTenant, installation } from './tenant.js';
import { isToken, makeToken, openToken } from './token.js';

export interface ConfiguredKey {
  /** `*` for the whole installation. */
  tenant: string;
  /** Admin of its tenant unless stated. */
  role?: Role;
  /** The secret itself; only its digest is kept. */
  key: string;
}

export interface AccessOptions {
  keys: ConfiguredKey[];
  /** Signs tokens and links. */
  secret: string;
  rules?: Record<string, TenantRules>;
}

export type Headers = Record<string, string | string[] | undefined>;

/** What a route asks of whoever wants to use it. */
export interface Demand {
  needs: Role | 'nobody';
  of: 'tenant' | 'installation';
  /** Whether an upload token is enough. */
  tokens?: boolean;
}

interface KnownKey {
  id: string;
  name: string;
  tenant: string;
  role: Role;
  digest: Buffer;
}

export class Access {
  readonly #keys: KnownKey[];
  readonly #signer: Signer;
  readonly #rules: Record<string, TenantRules>;

  constructor({ keys, secret, rules = {} }: AccessOptions) {
    this.#keys = keys.map(({ tenant, key, role = 'admin' }, index) => ({
      ...{ id: `configured-${index + 1}`, name: `SLUICE_KEYS ${index + 1}` },
      ...{ tenant, role, digest: sha256(key) },
    }));
    this.#signer = new Signer(secret);
    this.#rules = rules;
  }

  /** Without keys everybody on this machine is the default tenant. */
  get isOpen(): boolean {
    return this.#keys.length === 0;
  }

  identify(headers: Headers): Principal {
    const text = bearer(headers['authorization']) ?? single(headers['x-sluice-key']);
    if (text !== undefined) {
      const key = this.#keyOf(text);
      if (key) return this.#holderOf(key, single(headers['x-sluice-tenant']));
      if (isToken(text)) return this.#fromToken(text);
    }
    if (!this.isOpen || text !== undefined) throw accessErrors.UNAUTHENTICATED();
    const tenant = defaultTenant;
    return { tenant, installation: true, role: 'admin', via: 'open', rules: this.#rulesOf(tenant) };
  }

  makeToken(principal: Principal, scope: Scope, expiresAt: Date): string {
    return makeToken(this.#signer, principal, scope, expiresAt);
  }

  signLink(tenant: string, nodeId: string, expiresAt: Date, disposition: string): URLSearchParams {
    return signLink(this.#signer, tenant, nodeId, expiresAt, disposition);
  }

  /** Whoever holds a link to this file: may read it, for the tenant that made the link. */
  openLink(nodeId: string, query: Record<string, unknown>): Principal {
    const tenant = openLink(this.#signer, nodeId, query);
    this.#needTenant(tenant);
    return { tenant, installation: false, role: 'viewer', via: 'link', rules: this.#rulesOf(tenant) };
  }

  #fromToken(token: string): Principal {
    const { tenant, scope } = openToken(this.#signer, token);
    this.#needTenant(tenant);
    const rules = this.#rulesOf(tenant);
    return { tenant, installation: false, role: 'operator', via: 'token', scope, rules };
  }

  #needTenant(tenant: string): void {
    const isKnown = this.isOpen
      ? tenant === defaultTenant
      : this.#keys.some((key) => key.tenant === tenant || key.tenant === installation);
    if (!isKnown) throw accessErrors.TOKEN_INVALID({ reason: 'whoever made it has no key any more' });
  }

  #keyOf(text: string): KnownKey | undefined {
    const digest = sha256(text);
    let found: KnownKey | undefined;
    // All are compared, so that the time says nothing about which one it was.
    for (const known of this.#keys) if (timingSafeEqual(known.digest, digest)) found = known;
    return found;
  }

  #holderOf({ id, name, tenant, role }: KnownKey, asked: string | undefined): Principal {
    return { ...this.#belonging(asked, tenant), role, key: { id, name }, via: 'key' };
  }

  /** Whose things are meant by a key of this tenant. A wish for another tenant is refused: to act elsewhere than was said would be worse. */
  #belonging(asked: string | undefined, own: string): Pick<Principal, 'tenant' | 'installation' | 'rules'> {
    const isAll = own === installation;
    const tenant = isAll ? checkTenant(asked ?? defaultTenant) : own;
    if (asked !== undefined && asked !== tenant)
      throw accessErrors.FORBIDDEN({ reason: 'the key is for another tenant' });
    return { tenant, installation: isAll, rules: this.#rulesOf(tenant) };
  }

  #rulesOf(tenant: string): TenantRules {
    return Object.hasOwn(this.#rules, tenant) ? this.#rules[tenant]! : {};
  }
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

function bearer(header: string | string[] | undefined): string | undefined {
  return /^Bearer ([\x21-\x7e]+)$/i.exec(single(header) ?? '')?.[1];
}

function single(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}
