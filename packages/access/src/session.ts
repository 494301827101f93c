// Sessions: what a browser has instead of a key. It shows its key once and gets a cookie that scripts cannot read; whoever has the cookie
// is the key, until it expires, is signed out, or the text with which it was signed in is good no more.
import { randomBytes } from 'node:crypto';
import { isAhead, type Signer } from './signature.js';

export const sessionCookie = 'sluice_session';
export const csrfHeader = 'x-sluice-csrf';
export const sessionS = 12 * 3_600;

export interface SessionBody {
  id: string;
  key: string;
  /** Which text of the key it was: a key may have two for a while. */
  print: string;
  /** In seconds since 1970. */
  expires: number;
}

export function newSession(signer: Signer, key: string, digest: Buffer, expiresAt: Date): SessionBody {
  return {
    ...{ id: randomBytes(16).toString('base64url'), key, print: printOf(signer, digest) },
    expires: Math.floor(expiresAt.getTime() / 1_000),
  };
}

export function sessionText(signer: Signer, body: SessionBody): string {
  const text = Buffer.from(JSON.stringify(body)).toString('base64url');
  return `${text}.${signer.sign('session', text)}`;
}

export function openSession(signer: Signer, session: string): SessionBody | undefined {
  const [text = '', signature = '', ...more] = session.split('.');
  if (more.length > 0 || !signer.isRight('session', text, signature)) return undefined;
  const body = JSON.parse(Buffer.from(text, 'base64url').toString()) as SessionBody;
  return isAhead(body.expires) ? body : undefined;
}

/** Says which digest it was to whoever has the digest, and nothing to others. */
export function printOf(signer: Signer, digest: Buffer): string {
  return signer.sign('print', digest.toString('hex'));
}

/** What a page must know to change anything: another page can send the cookie, but cannot read this. */
export function csrfOf(signer: Signer, sessionId: string): string {
  return signer.sign('csrf', sessionId);
}

/** The session among the cookies of a request. Of two with the same name none counts: one was put there by somebody else. */
export function sessionIn(cookies: string | undefined): string | undefined {
  if (cookies === undefined || !cookies.includes(sessionCookie)) return undefined;
  const ours = cookies
    .split(';')
    .map((cookie) => cookie.trim())
    .filter((cookie) => cookie.startsWith(`${sessionCookie}=`));
  return ours.length === 1 ? ours[0]!.slice(sessionCookie.length + 1) : undefined;
}

export function cookieOf(text: string, maxAgeS: number, isSecure: boolean): string {
  const secure = isSecure ? '; Secure' : '';
  return `${sessionCookie}=${text}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${maxAgeS}${secure}`;
}
