// A ring of records in one Redis string. Its length never changes: the record of minute m lies at place m modulo the number of places,
// over that of a day before. A record begins with the number of its minute (or hour), so that an old one, or one that was never
// written, is recognised. Writing is one SETRANGE of 48 bytes, reading at most two GETRANGEs.
import { decodeSmall, encodeSmall } from './smallNumber.js';

/** Figures of one record; what has no use yet is absent, and gives later versions room. */
export const figuresPerRecord = 22;
const stampBytes = 4;
export const recordBytes = stampBytes + 2 * figuresPerRecord;

export interface Ring {
  places: number;
  stepMs: number;
  /** How long the key outlives its last record. */
  keepMs: number;
}

const hourMs = 3_600_000;
export const minuteRing: Ring = { places: 24 * 60, stepMs: 60_000, keepMs: 25 * hourMs };
export const hourRing: Ring = { places: 90 * 24, stepMs: hourMs, keepMs: 91 * 24 * hourMs };

/** The figures of a record, by their place; undefined for what is not known. */
export type Figures = readonly (number | undefined)[];

export function offsetOf(ring: Ring, step: number): number {
  return (step % ring.places) * recordBytes;
}

export function encodeRecord(step: number, figures: Figures): Buffer {
  const record = Buffer.alloc(recordBytes, 0xff);
  record.writeUInt32BE(step, 0);
  for (const [i, figure] of figures.slice(0, figuresPerRecord).entries()) {
    record.writeUInt16BE(encodeSmall(figure), stampBytes + 2 * i);
  }
  return record;
}

/** The records of the steps from `first` on, as they lie one behind the other in `bytes`; null for those that are not there. */
export function decodeRecords(bytes: Buffer, first: number, count: number): (Figures | null)[] {
  return Array.from({ length: count }, (_, i) => {
    const at = i * recordBytes;
    if (at + recordBytes > bytes.length || bytes.readUInt32BE(at) !== first + i) return null;
    return Array.from({ length: figuresPerRecord }, (_figure, n) =>
      decodeSmall(bytes.readUInt16BE(at + stampBytes + 2 * n)),
    );
  });
}

/** The stretches of the string that hold these steps: two where the ring begins anew. */
export function stretchesOf(ring: Ring, first: number, count: number): { first: number; count: number }[] {
  const untilEnd = ring.places - (first % ring.places);
  if (count <= untilEnd) return [{ first, count }];
  return [
    { first, count: untilEnd },
    { first: first + untilEnd, count: count - untilEnd },
  ];
}
