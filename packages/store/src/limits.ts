// What may be a key, metadata, a part's number and a range: the rules of S3, kept by every store, so that what works on disk
// works on S3. They are checked before anything is sent or written.
import type { GetOptions, PutOptions } from './contract.js';
import { storeErrors } from './errors.js';

const MAX_KEY_BYTES = 1_024;
/** S3 counts the names and values of user metadata together. */
const MAX_METADATA_BYTES = 2_048;
const SHOWN_KEY_CHARACTERS = 200;

export function checkKey(key: unknown): asserts key is string {
  const refuse = (reason: string): never => {
    throw storeErrors.KEY_INVALID({ key: String(key).slice(0, SHOWN_KEY_CHARACTERS), reason });
  };
  if (typeof key !== 'string' || key === '') return refuse('a key is a text of at least one character');
  // Half of a surrogate pair has no UTF-8: two such keys would become one.
  if (/[\ud800-\udfff]/u.test(key)) refuse('it is not well-formed Unicode');
  if (Buffer.byteLength(key) > MAX_KEY_BYTES) refuse(`it has more than ${MAX_KEY_BYTES} bytes of UTF-8`);
}

export function checkDescription({
  contentType,
  metadata,
}: Pick<PutOptions, 'contentType' | 'metadata'>): void {
  if (contentType !== undefined && !/^[\x20-\x7e]{1,255}$/.test(contentType)) {
    throw storeErrors.INPUT_INVALID({ what: 'contentType', reason: 'up to 255 printable ASCII characters' });
  }
  let bytes = 0;
  for (const [name, value] of Object.entries(metadata ?? {})) {
    if (!/^[a-z0-9][a-z0-9._-]*$/.test(name)) {
      const reason =
        'a name has lower-case letters, digits, ".", "_" and "-" only, because stores fold the case';
      throw storeErrors.INPUT_INVALID({ what: `metadata "${name}"`, reason });
    }
    if (typeof value !== 'string' || /[\ud800-\udfff]/u.test(value)) {
      throw storeErrors.INPUT_INVALID({
        what: `metadata "${name}"`,
        reason: 'a value is a well-formed text',
      });
    }
    bytes += name.length + Buffer.byteLength(encodeMetadataValue(value));
  }
  if (bytes > MAX_METADATA_BYTES) {
    const reason = `${bytes} bytes are more than the ${MAX_METADATA_BYTES} a store takes`;
    throw storeErrors.INPUT_INVALID({ what: 'metadata', reason });
  }
}

/** Metadata travel as HTTP headers, which are ASCII without spaces at the ends. Other values are percent-encoded and marked. */
export function encodeMetadataValue(value: string): string {
  const plain = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(value) && !value.startsWith(ENCODED_MARK);
  return plain ? value : ENCODED_MARK + encodeURIComponent(value);
}

export function decodeMetadataValue(value: string): string {
  if (!value.startsWith(ENCODED_MARK)) return value;
  try {
    return decodeURIComponent(value.slice(ENCODED_MARK.length));
  } catch {
    // Somebody else's value that happens to begin like ours.
    return value;
  }
}

const ENCODED_MARK = "utf-8''";

export function checkPartNumber(number: number, maxParts: number): void {
  if (Number.isInteger(number) && number >= 1 && number <= maxParts) return;
  throw storeErrors.INPUT_INVALID({
    what: `part ${number}`,
    reason: `parts are numbered from 1 to ${maxParts}`,
  });
}

export function checkLength(length: number, maxBytes: number): void {
  if (Number.isSafeInteger(length) && length >= 0 && length <= maxBytes) return;
  const reason = `the store takes 0 to ${maxBytes} bytes at once; send larger objects in parts`;
  throw storeErrors.INPUT_INVALID({ what: `a body of ${length} bytes`, reason });
}

export function checkRange({ range }: GetOptions): void {
  if (range === undefined) return;
  const { first, last = first } = range;
  if (Number.isSafeInteger(first) && Number.isSafeInteger(last) && first >= 0 && last >= first) return;
  const reason = 'first and last are whole numbers from 0, and last is not before first';
  throw storeErrors.INPUT_INVALID({ what: `range ${range.first}-${range.last ?? ''}`, reason });
}

/** Parts in the order of their numbers, each once. */
export function checkPartList(key: string, parts: { number: number }[], maxParts: number): void {
  const operation = 'completing';
  if (parts.length === 0) {
    throw storeErrors.PARTS_REFUSED({
      operation,
      key,
      reason: 'there are none; put an empty object instead',
    });
  }
  for (const [index, { number }] of parts.entries()) {
    checkPartNumber(number, maxParts);
    if (index > 0 && parts[index - 1]!.number >= number) {
      throw storeErrors.PARTS_REFUSED({
        operation,
        key,
        reason: `part ${number} is not in the order of numbers`,
      });
    }
  }
}
