// Several plain jobs that lie together in Redis, as bale.lua describes them, and as a worker gets them: they share their header, and
// their payloads stand one per line, with a comma between them, so that one JSON.parse reads them all. That costs much less than one
// call for each.
import { queueErrors } from './errors.js';
import { decodePayload, flag, payloadOf } from './packed.js';
import type { UnpackedJob } from './packed.js';

/** JSON as JSON.stringify writes it does not contain this. */
export const betweenJobs = ',\n';
export const maxJobsPerBale = 16;
/** Large payloads gain nothing in a bale, and a bale that has to be taken apart should be small. In UTF-16 units. */
export const maxBaledLength = 1_024;
export const maxBaleLength = 4_096;

/** The name of a job is its id, or the stem of its bale and its place there. `unreadable`: why the payload is not what it should be. */
export type Visit = (
  name: string,
  place: number | undefined,
  stored: UnpackedJob,
  data: unknown,
  unreadable?: Error,
) => void;

/** Visits a job, or those of a bale in order; returns how many there are. */
export function readJobs(name: string, stored: UnpackedJob, visit: Visit): number {
  if (!(stored.flags & flag.bale)) {
    readOne(name, undefined, stored, visit);
    return 1;
  }
  const stem = name.slice(1);
  const together = parseTogether(stored);
  if (together) {
    for (let i = 0; i < together.length; i++) visit(stem, i, stored, together[i]);
    return together.length;
  }
  // Somebody else wrote into Redis. What can still be read is.
  const payloads = payloadsIn(stored);
  payloads.forEach((payload, i) =>
    readOne(stem, i, { ...stored, ...payload, flags: stored.flags & ~flag.bale }, visit),
  );
  return payloads.length;
}

/** The payload of one job of a bale. */
export function payloadInBale(bale: UnpackedJob, place: number): Buffer {
  return payloadOf({ ...bale, ...payloadsIn(bale)[place] });
}

function readOne(name: string, place: number | undefined, stored: UnpackedJob, visit: Visit): void {
  let data: unknown;
  let unreadable: Error | undefined;
  try {
    data = decodePayload(stored);
  } catch (error) {
    unreadable = queueErrors.MALFORMED({ reason: String(error) }, { cause: error });
  }
  visit(name, place, stored, data, unreadable);
}

function parseTogether({ buffer, payloadStart, payloadEnd, size }: UnpackedJob): unknown[] | undefined {
  try {
    const data = JSON.parse(`[${buffer.toString('utf8', payloadStart, payloadEnd)}]`) as unknown[];
    return data.length === size ? data : undefined;
  } catch {
    return undefined;
  }
}

function payloadsIn({ buffer, payloadStart, payloadEnd }: UnpackedJob) {
  const payloads: { payloadStart: number; payloadEnd: number }[] = [];
  for (let start = payloadStart; start <= payloadEnd;) {
    const found = buffer.indexOf(betweenJobs, start);
    const end = found < 0 || found > payloadEnd ? payloadEnd : found;
    payloads.push({ payloadStart: start, payloadEnd: end });
    start = end + betweenJobs.length;
  }
  return payloads;
}
