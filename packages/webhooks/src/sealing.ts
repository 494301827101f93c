// Secrets must be known in order to sign with them, so they cannot be kept as digests. They are kept sealed (AES-256-GCM) with a key
// made of the server's own secret: whoever reads the database alone can sign nothing. The id of the webhook is part of the seal; a
// sealed secret that is moved to another webhook does not open.
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

const nonceBytes = 12;
const tagBytes = 16;
const version = 'v1.';

export class Seal {
  readonly #key: Buffer;

  constructor(serverSecret: string) {
    this.#key = Buffer.from(hkdfSync('sha256', serverSecret, '', 'sluice webhook secrets', 32));
  }

  close(secret: string, webhookId: string): string {
    const nonce = randomBytes(nonceBytes);
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce).setAAD(Buffer.from(webhookId));
    const sealed = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
    return version + Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url');
  }

  /** Undefined if it was sealed with another server secret, for another webhook, or was changed. */
  open(text: string, webhookId: string): string | undefined {
    const bytes = Buffer.from(text.slice(version.length), 'base64url');
    if (!text.startsWith(version) || bytes.length < nonceBytes + tagBytes) return undefined;
    const nonce = bytes.subarray(0, nonceBytes);
    const decipher = createDecipheriv('aes-256-gcm', this.#key, nonce).setAAD(Buffer.from(webhookId));
    decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes));
    try {
      const opened = [decipher.update(bytes.subarray(nonceBytes + tagBytes)), decipher.final()];
      return Buffer.concat(opened).toString();
    } catch {
      return undefined;
    }
  }
}

export function newSecret(): string {
  return `whsec_${randomBytes(32).toString('base64url')}`;
}
