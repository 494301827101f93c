// Who is asking.
//
//   key      belongs to a tenant, or to the whole installation, and has a role. It is in the records, or in the configuration.
//            Several may be valid at once, so that they can be changed without an outage.
//   session  a cookie that a browser got for a key
//   token    signed by us, for browsers: may upload to one place, up to a size, for a short time, and look after those uploads
//   link     a signed address of one file: may download it for a short time
//   nobody   as long as there has never been a key there is one tenant, and only this machine is answered
//
// Keys are kept and compared as SHA-256 digests: neither the length of a key nor where it differs can be measured. Sessions, tokens and
// links end with the key that made them; those of a configured key with the last key of its tenant.
//
// This runs for every chunk of every upload. It answers at once, without a promise, unless the ring of keys must be looked at again.
import { timingSafeEqual } from 'node:crypto';
import type { LiveKey } from '@sluice/records';
import { accessErrors } from './errors.js';
import type { KeyRing } from './keyRing.js';
import { idOf } from './keyText.js';
import { openLink, signLink } from './link.js';
import type { Principal, Scope, TenantRules } from './principal.js';
import type { Role } from './role.js';
import {
  csrfOf,
  newSession,
  openSession,
  printOf,
  sessionIn,
  sessionS,
  sessionText,
  type SessionBody,
} from './session.js';
import { sameText, sha256, Signer } from './signature.js';
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
  /** Those of the configuration. */
  keys: ConfiguredKey[];
  /** Those of the records. */
  ring?: KeyRing;
  /** Signs sessions, tokens and links. */
  secret: string;
  rules?: Record<string, TenantRules>;
  /** Whether everybody is answered as long as there are no keys; for servers that only this machine can reach. */
  mayBeOpen?: boolean;
}

export type Headers = Record<string, string | string[] | undefined>;

/** What signing in gives. */
export interface SignedIn {
  principal: Principal;
  /** The value of the cookie. */
  session: string;
  csrf: string;
  expiresAt: Date;
}

/** A key that was recognised, with the digest that did it. */
interface Holder {
  id: string;
  name: string;
  tenant: string;
  role: Role;
  digest: Buffer;
  expiresAt: Date | null;
}

const noDigest = Buffer.alloc(32);

export class Access {
  readonly #configured: Holder[];
  readonly #ring: KeyRing | undefined;
  readonly #signer: Signer;
  readonly #rules: Record<string, TenantRules>;
  readonly #mayBeOpen: boolean;

  constructor({ keys, ring, secret, rules = {}, mayBeOpen = true }: AccessOptions) {
    this.#configured = keys.map(({ tenant, key, role = 'admin' }, index) => ({
      ...{ id: `configured-${index + 1}`, name: `SLUICE_KEYS ${index + 1}` },
      ...{ tenant, role, digest: sha256(key), expiresAt: null },
    }));
    this.#ring = ring;
    this.#signer = new Signer(secret);
    this.#rules = rules;
    this.#mayBeOpen = mayBeOpen;
  }

  /** Without keys everybody on this machine is the default tenant. */
  get isOpen(): boolean {
    return this.#mayBeOpen && !this.hasKeys;
  }

  get hasKeys(): boolean {
    return this.#configured.length > 0 || this.#ring?.isClosed === true;
  }

  get isConfigured(): boolean {
    return this.#configured.length > 0;
  }

  /** Whether an admin of the installation is configured, whom nobody can revoke. */
  get hasConfiguredAdmin(): boolean {
    return this.#configured.some(({ tenant, role }) => tenant === installation && role === 'admin');
  }

  identify(headers: Headers): Principal | Promise<Principal> {
    return this.#freshly(() => this.#identify(headers));
  }

  /** Exchanges the text of a key for a session. */
  async signIn(text: string): Promise<SignedIn> {
    const holder = await this.#lookedFor(text);
    if (!holder) throw accessErrors.UNAUTHENTICATED();
    const latest = Date.now() + sessionS * 1_000;
    const expiresAt = new Date(Math.min(latest, holder.expiresAt?.getTime() ?? latest));
    const body = newSession(this.#signer, holder.id, holder.digest, expiresAt);
    const principal = this.#asSession(holder, body, undefined);
    const session = sessionText(this.#signer, body);
    return { principal, session, csrf: csrfOf(this.#signer, body.id), expiresAt };
  }

  /** What a page with this session must send along to change anything. */
  csrfOf({ id }: { id: string }): string {
    return csrfOf(this.#signer, id);
  }

  isCsrf(session: { id: string }, text: string): boolean {
    return sameText(text, this.csrfOf(session));
  }

  makeToken(principal: Principal, scope: Scope, expiresAt: Date): string {
    return makeToken(this.#signer, principal, scope, expiresAt);
  }

  signLink(principal: Principal, nodeId: string, expiresAt: Date, disposition: string): URLSearchParams {
    return signLink(this.#signer, principal, nodeId, expiresAt, disposition);
  }

  /** Whoever holds a link to this file: may read it, for the tenant that made the link. */
  openLink(nodeId: string, query: Record<string, unknown>): Principal | Promise<Principal> {
    return this.#freshly(() => {
      const { tenant, key } = openLink(this.#signer, nodeId, query);
      this.#needMaker(tenant, key);
      return { tenant, installation: false, role: 'viewer', via: 'link', rules: this.#rulesOf(tenant) };
    });
  }

  /** What a ring that is old would answer is asked again when it has been looked at. */
  #freshly(answer: () => Principal | Promise<Principal>): Principal | Promise<Principal> {
    return this.#ring && !this.#ring.isFresh ? this.#ring.look().then(answer) : answer();
  }

  #identify(headers: Headers): Principal | Promise<Principal> {
    const text = bearer(headers['authorization']) ?? single(headers['x-sluice-key']);
    const asked = single(headers['x-sluice-tenant']);
    if (text !== undefined) {
      const holder = this.#holderOf(text);
      if (holder) return this.#asKey(holder, asked);
      if (isToken(text)) return this.#fromToken(text);
      return this.#fromUnknown(text, asked);
    }
    const session = sessionIn(single(headers['cookie']));
    if (session !== undefined) return this.#fromSession(session, asked);
    if (!this.isOpen) throw accessErrors.UNAUTHENTICATED();
    const tenant = defaultTenant;
    return { tenant, installation: true, role: 'admin', via: 'open', rules: this.#rulesOf(tenant) };
  }

  /** A key that nobody knows here may have been made a moment ago in another process. */
  async #fromUnknown(text: string, asked: string | undefined): Promise<Principal> {
    const holder = await this.#lookedFor(text);
    if (!holder) throw accessErrors.UNAUTHENTICATED();
    return this.#asKey(holder, asked);
  }

  async #lookedFor(text: string): Promise<Holder | undefined> {
    const known = this.#holderOf(text);
    if (known || !this.#ring || idOf(text) === undefined) return known;
    await this.#ring.look();
    return this.#holderOf(text);
  }

  #holderOf(text: string): Holder | undefined {
    const digest = sha256(text);
    const id = idOf(text);
    const known = id === undefined ? undefined : this.#ring?.find(id);
    let found = known && recognised(known, digest);
    // All that are configured are compared, so that the time says nothing about which one it was.
    for (const holder of this.#configured) if (timingSafeEqual(holder.digest, digest)) found = holder;
    return found;
  }

  #fromSession(text: string, asked: string | undefined): Principal {
    const body = openSession(this.#signer, text);
    if (!body || this.#ring?.isEnded(body.id)) throw accessErrors.SESSION_ENDED();
    const holder = [...this.#configured, ...textsOf(this.#ring?.find(body.key))].find(
      ({ id, digest }) => id === body.key && printOf(this.#signer, digest) === body.print,
    );
    if (!holder) throw accessErrors.SESSION_ENDED();
    return this.#asSession(holder, body, asked);
  }

  #fromToken(token: string): Principal {
    const { tenant, scope, key } = openToken(this.#signer, token);
    const maker = this.#needMaker(tenant, key);
    const rules = this.#rulesOf(tenant);
    const by = maker && { key: { id: maker.id, name: maker.name } };
    return { tenant, installation: false, role: 'operator', via: 'token', ...by, scope, rules };
  }

  /** The key that made a token or a link, if it is one of the records; refuses what nobody stands behind any more. */
  #needMaker(tenant: string, key: string | undefined): LiveKey | undefined {
    const maker = key === undefined ? undefined : this.#ring?.find(key);
    const isKnown = key === undefined ? this.#isTenant(tenant) : maker !== undefined;
    if (!isKnown) throw accessErrors.TOKEN_INVALID({ reason: 'whoever made it has no key any more' });
    return maker;
  }

  #isTenant(tenant: string): boolean {
    if (this.isOpen) return tenant === defaultTenant;
    return [tenant, installation].some(
      (name) => this.#configured.some((key) => key.tenant === name) || this.#ring?.has(name) === true,
    );
  }

  #asKey(holder: Holder, asked: string | undefined): Principal {
    const { id, name, tenant, role } = holder;
    this.#ring?.used(id);
    return { ...this.#belonging(asked, tenant), role, key: { id, name }, via: 'key' };
  }

  #asSession(holder: Holder, body: SessionBody, asked: string | undefined): Principal {
    const session = { id: body.id, expiresAt: new Date(body.expires * 1_000) };
    return { ...this.#asKey(holder, asked), via: 'session', session };
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

/** The key as the holder of this text, which is its present one or, for a while, the one before. Both are compared every time. */
function recognised(key: LiveKey, digest: Buffer): Holder | undefined {
  const [isPresent, isOld] = [key.digest, key.oldDigest ?? noDigest].map((each) =>
    timingSafeEqual(each, digest),
  );
  if (isPresent) return { ...key, digest: key.digest };
  return isOld && textsOf(key).length === 2 ? { ...key, digest: key.oldDigest! } : undefined;
}

/** A key once for each of its texts that are good now. */
function textsOf(key: LiveKey | undefined): Holder[] {
  if (!key) return [];
  const { oldDigest, oldUntil } = key;
  const isOldGood = oldDigest !== null && oldUntil !== null && oldUntil.getTime() > Date.now();
  return [key, ...(isOldGood ? [{ ...key, digest: oldDigest }] : [])];
}

function bearer(header: string | string[] | undefined): string | undefined {
  return /^Bearer ([\x21-\x7e]+)$/i.exec(single(header) ?? '')?.[1];
}

function single(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}
