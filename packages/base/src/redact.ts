/**
 * Secrets do not belong in logs, and nobody remembers that every time. So the writer of the log takes them out: fields whose name says that
 * they hold one, texts of which a part looks like one, and those that it was told of.
 *
 *     redactor(['the password of the store'])('authorization', 'Bearer x')  // '[redacted]'
 *
 * A text keeps what is around the secret, because that is why it was written.
 */

/** Takes the secrets out of a value under a name, as `JSON.stringify` hands them over. */
export type Redact = (name: string, value: unknown) => unknown;

const MASK = '[redacted]';

/** Names of fields, without regard to case and separators. */
const SECRET_NAMES = new Set(
  [
    'authorization proxyauthorization cookie setcookie xsluicekey xsluicecsrf xservicekey',
    'password secret secretaccesskey accesskeyid sessiontoken apikey token csrf keytext webhooksecret',
  ].flatMap((line) => line.split(' ')),
);

/** Parts of texts; what the first group matched stays. */
const SECRET_PARTS = [
  // Keys, tokens and secrets of ours.
  /(\bsl[kt]_[0-9a-f]{0,16})[\w.-]*/gi,
  /(\bwhsec_)[\w+/=-]+/gi,
  /(\b(?:Bearer|Basic)\s+)[\w.~+/=-]+/gi,
  /(\bsluice_session=)[^;\s"']+/gi,
  // Links of ours, and presigned addresses of stores.
  /([?&](?:signature|sig|X-Amz-Signature|X-Amz-Credential|X-Amz-Security-Token|token|key)=)[^&\s"'<>]+/gi,
  /(\bx-(?:sluice-key|service-key|sluice-csrf)["']?\s*[:=]\s*["']?)[^\s"',;]+/gi,
  // Passwords in addresses.
  /(\b[a-z][a-z0-9+.-]{0,20}:\/\/[^\s/:@"']*:)[^\s/@"']+(?=@)/gi,
];

/** So short a word is in too many texts. */
const SHORTEST_KNOWN = 6;

/** `known` are texts that are secret whatever they look like: those of the configuration. */
export function redactor(known: readonly string[] = []): Redact {
  const words = known.filter((word) => word.length >= SHORTEST_KNOWN);
  const inText = (text: string): string => {
    let clean = text;
    for (const word of words) if (clean.includes(word)) clean = clean.replaceAll(word, MASK);
    for (const part of SECRET_PARTS) clean = clean.replace(part, `$1${MASK}`);
    return clean;
  };
  return (name, value) => {
    const isSecret = value !== null && value !== undefined && SECRET_NAMES.has(plain(name));
    if (isSecret && typeof value !== 'boolean') return MASK;
    return typeof value === 'string' ? inText(value) : value;
  };
}

function plain(name: string): string {
  return name.toLowerCase().replace(/[^a-z]/g, '');
}
