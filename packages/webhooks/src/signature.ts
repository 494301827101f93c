// Proves to a receiver who sent a request, what, and when: HMAC-SHA256 over `<timestamp>.<body>`. While one secret replaces another the
// header has a signature of each, so that receivers may change over when it suits them.
import { createHmac, timingSafeEqual } from 'node:crypto';

const defaultToleranceS = 300;

/** The value of X-Sluice-Signature: `v1=<hex>`, one for each secret. */
export function sign(secrets: readonly string[], timestamp: string, body: string): string {
  return secrets.map((secret) => `v1=${digest(secret, timestamp, body).toString('hex')}`).join(',');
}

export interface Received {
  /** X-Sluice-Signature. */
  signature: string | undefined;
  /** X-Sluice-Timestamp, in seconds since 1970. */
  timestamp: string | undefined;
  /** The body as it came, before any parsing. */
  body: string;
}

/** For receivers in Node: whether it was signed with this secret a short while ago. */
export function verify(
  secret: string,
  { signature = '', timestamp = '', body }: Received,
  { toleranceS = defaultToleranceS, nowMs = Date.now() } = {},
): boolean {
  const ageS = Math.abs(nowMs / 1_000 - Number(timestamp));
  if (!/^\d{1,12}$/.test(timestamp) || ageS > toleranceS) return false;
  const right = digest(secret, timestamp, body);
  return signature.split(',').some((each) => {
    const given = Buffer.from(/^v1=([0-9a-f]{64})$/.exec(each.trim())?.[1] ?? '', 'hex');
    return given.length === right.length && timingSafeEqual(given, right);
  });
}

function digest(secret: string, timestamp: string, body: string): Buffer {
  return createHmac('sha256', secret).update(`${timestamp}.${body}`).digest();
}
