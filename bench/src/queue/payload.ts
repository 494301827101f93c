/*
 * The payload of every job: a JSON object of exactly 180 bytes. The number has a fixed width, so that each
 * payload is different and none is longer.
 */
export const PAYLOAD_BYTES = 180;

export interface Payload {
  n: number;
  kind: string;
  note: string;
}

const FIRST_NUMBER = 1_000_000_000;
const KIND = 'document';
const NOTE = 'n'.repeat(PAYLOAD_BYTES - JSON.stringify({ n: FIRST_NUMBER, kind: KIND, note: '' }).length);

export function payload(index: number): Payload {
  return { n: FIRST_NUMBER + index, kind: KIND, note: NOTE };
}

export function payloads(count: number, from = 0): Payload[] {
  return Array.from({ length: count }, (_, index) => payload(from + index));
}
