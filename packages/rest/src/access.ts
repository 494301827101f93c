// Who is asking, and what they may do.
//
//   key      belongs to a tenant, for servers; may do everything that is the tenant's. Several keys may be valid at once, so that
//            they can be changed without an outage.
//   token    signed by us, for browsers: may upload to one place, up to a size, for a short time, and look after those uploads
//   link     a signed address of one file: may download it for a short time
//   nobody   without configured keys there is one tenant, and only this machine is answered
//
// Keys are kept and compared as SHA-256 digests, all of them every time: neither the length of a key nor where it differs can be
// measured. A tenant whose last key was taken away is nobody any more: its tokens and links end with the keys.
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { checkName, checkPath, type Limits } from '@sluice/records';
import { restErrors } from './errors.js';

export interface TenantKey {
  tenant: string;
  /** The secret itself; only its digest is kept. */
  key: string;
}

export interface TenantRules extends Limits {
  /** Media types that are taken, `image/*` for all of a kind; all types unless stated. */
  types?: string[];
}

export interface AccessOptions {
  keys: TenantKey[];
  /** Signs tokens and links. */
  secret: string;
  rules?: Record<string, TenantRules>;
}

export interface Principal {
  tenant: string;
  /** What a token limits its holder to. */
  scope?: Scope;
  rules: TenantRules;
}

export interface Scope {
  drive: string;
  /** One file, or everything below a folder. */
  path?: string;
  pathPrefix?: string;
  maxBytes?: number;
  types?: string[];
}

interface TokenBody extends Scope {
  tenant: string;
  /** In seconds since 1970. */
  expires: number;
}

export const defaultTenant = 'default';

export class Access {
  readonly #keys: { tenant: string; digest: Buffer }[];
  readonly #secret: string;
  readonly #rules: Record<string, TenantRules>;

  constructor({ keys, secret, rules = {} }: AccessOptions) {
    this.#keys = keys.map(({ tenant, key }) => ({ tenant, digest: sha256(key) }));
    this.#secret = secret;
    this.#rules = rules;
  }

  /** Without keys everybody on this machine is the default tenant. */
  get isOpen(): boolean {
    return this.#keys.length === 0;
  }

  identify(headers: Record<string, string | string[] | undefined>): Principal {
    const text = bearer(headers['authorization']) ?? single(headers['x-sluice-key']);
    if (text !== undefined) {
      const tenant = this.#tenantOf(text);
      if (tenant !== undefined) return this.#principal(tenant);
      if (text.startsWith(tokenMark)) return this.#fromToken(text);
    }
    if (!this.isOpen || text !== undefined) throw restErrors.UNAUTHENTICATED();
    return this.#principal(defaultTenant);
  }

  makeToken(principal: Principal, scope: Scope, expiresAt: Date): string {
    if (principal.scope) throw restErrors.FORBIDDEN({ reason: 'a token cannot make tokens' });
    const body: TokenBody = {
      ...checkedScope(scope),
      tenant: principal.tenant,
      expires: Math.floor(expiresAt.getTime() / 1_000),
    };
    const text = Buffer.from(JSON.stringify(body)).toString('base64url');
    return `${tokenMark}${text}.${this.#sign('token', text)}`;
  }

  /** The part of an address that makes it a link. */
  signLink(tenant: string, nodeId: string, expiresAt: Date, disposition: string): URLSearchParams {
    const expires = String(Math.floor(expiresAt.getTime() / 1_000));
    const signature = this.#sign('link', [tenant, nodeId, expires, disposition].join('\n'));
    return new URLSearchParams({ tenant, expires, disposition, signature });
  }

  /** The tenant whose file a link may read. */
  openLink(nodeId: string, query: Record<string, unknown>): string {
    const [tenant, expires, disposition, signature] = ['tenant', 'expires', 'disposition', 'signature'].map(
      (name) => {
        const value = query[name];
        return typeof value === 'string' ? value : '';
      },
    ) as [string, string, string, string];
    const right = this.#sign('link', [tenant, nodeId, expires, disposition].join('\n'));
    if (!sameText(signature, right)) throw restErrors.TOKEN_INVALID({ reason: 'its signature is wrong' });
    if (!isAhead(Number(expires))) throw restErrors.TOKEN_INVALID({ reason: 'it has expired' });
    this.#needTenant(tenant);
    return tenant;
  }

  #fromToken(token: string): Principal {
    const body = token.slice(tokenMark.length);
    const text = body.slice(0, Math.max(0, body.indexOf('.')));
    const signature = body.slice(text.length + 1);
    if (!sameText(signature, this.#sign('token', text)))
      throw restErrors.TOKEN_INVALID({ reason: 'its signature is wrong' });
    const { tenant, expires, ...scope } = JSON.parse(Buffer.from(text, 'base64url').toString()) as TokenBody;
    if (!isAhead(expires)) throw restErrors.TOKEN_INVALID({ reason: 'it has expired' });
    this.#needTenant(tenant);
    return { ...this.#principal(tenant), scope };
  }

  #needTenant(tenant: string): void {
    const isKnown = this.isOpen ? tenant === defaultTenant : this.#keys.some((key) => key.tenant === tenant);
    if (!isKnown) throw restErrors.TOKEN_INVALID({ reason: 'whoever made it has no key any more' });
  }

  #tenantOf(key: string): string | undefined {
    const digest = sha256(key);
    let found: string | undefined;
    // All are compared, so that the time says nothing about which one it was.
    for (const known of this.#keys) if (timingSafeEqual(known.digest, digest)) found = known.tenant;
    return found;
  }

  #principal(tenant: string): Principal {
    return { tenant, rules: Object.hasOwn(this.#rules, tenant) ? this.#rules[tenant]! : {} };
  }

  #sign(purpose: 'token' | 'link', text: string): string {
    return createHmac('sha256', this.#secret).update(`${purpose}\n${text}`).digest('base64url');
  }
}

const tokenMark = 'slt_';

/** The scope with its names as the records keep them, so that it is compared with what will be there. */
function checkedScope({ drive, path, pathPrefix, ...rest }: Scope): Scope {
  if (path !== undefined && pathPrefix !== undefined)
    throw restErrors.REQUEST_INVALID({ reason: 'a token is for a path or for a pathPrefix, not for both' });
  const folder = pathPrefix?.replace(/\/$/, '');
  return {
    ...rest,
    drive: checkName(drive),
    ...(path !== undefined && { path: checkPath(path) }),
    ...(folder !== undefined && { pathPrefix: folder === '' ? '' : checkPath(folder) }),
  };
}

/** Refuses what a token does not cover. The path is one that `checkPath` returned: nothing in it leads elsewhere. */
export function checkScope({ scope }: Principal, drive: string, path: string): void {
  if (!scope) return;
  const isInside =
    scope.drive === drive &&
    (scope.path !== undefined ? scope.path === path : path.startsWith(withSlash(scope.pathPrefix ?? '')));
  if (!isInside) throw restErrors.FORBIDDEN({ reason: 'the token is for another place' });
}

/** Refuses whatever a token cannot do at all. */
export function needKey({ scope }: Principal): void {
  if (scope) throw restErrors.FORBIDDEN({ reason: 'a token is for uploads only; use a key' });
}

/** The limits of the tenant and of the token together. */
export function limitsOf({ rules, scope }: Principal): Limits {
  const { types: _, ...limits } = rules;
  const most = Math.min(limits.maxFileBytes ?? Infinity, scope?.maxBytes ?? Infinity);
  return { ...limits, ...(most !== Infinity && { maxFileBytes: most }) };
}

export function checkType({ rules, scope }: Principal, type: string | undefined): void {
  for (const allowed of [rules.types, scope?.types]) {
    if (!allowed) continue;
    const plain = (type ?? 'application/octet-stream').split(';')[0]!.trim().toLowerCase();
    const isAllowed = allowed
      .map((rule) => rule.toLowerCase())
      .some((rule) => rule === plain || (rule.endsWith('/*') && plain.startsWith(rule.slice(0, -1))));
    if (!isAllowed) throw restErrors.TYPE_REFUSED({ type: plain, allowed: allowed.join(', ') });
  }
}

/** A moment in seconds since 1970. */
function isAhead(expires: number): boolean {
  return expires * 1_000 > Date.now();
}

function withSlash(prefix: string): string {
  return prefix === '' || prefix.endsWith('/') ? prefix : `${prefix}/`;
}

function bearer(header: string | string[] | undefined): string | undefined {
  return /^Bearer ([\x21-\x7e]+)$/i.exec(single(header) ?? '')?.[1];
}

function single(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function sameText(a: string, b: string): boolean {
  return timingSafeEqual(sha256(a), sha256(b));
}
