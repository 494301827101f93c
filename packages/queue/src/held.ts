// What a session holds according to Redis. Most jobs have a field of their own in the session's hash, id → token; those of a quick
// claim lie together in the field of their lane (sheaf.lua), and some of them in bales (bale.lua).
import type { RedisLink } from '@sluice/redis';
import type { PartitionKeys } from './keys.js';
import { unpackJob } from './packed.js';
import { readStrings } from './wire.js';

export interface Hold {
  token: string;
  /** The job lies in a bale: it has no field of its own in `jobs`, no options, and was never tried. */
  isBaled: boolean;
}

export async function readHeld(
  link: RedisLink,
  keys: PartitionKeys,
  session: string,
): Promise<Map<string, Hold>> {
  const reply = (await link.call('HGETALL', [keys.active + session])) as Buffer[];
  const held = new Map<string, Hold>();
  for (let i = 0; i < reply.length; i += 2) {
    const field = reply[i]!.toString();
    const value = reply[i + 1]!;
    if (!field.startsWith('#')) held.set(field, { token: value.toString(), isBaled: false });
    else if (field !== '#') untie(value, held);
  }
  const bales = [...held.keys()].filter((name) => name.startsWith('='));
  if (bales.length === 0) return held;
  const found = (await link.call('HMGET', [keys.jobs, ...bales])) as (Buffer | null)[];
  bales.forEach((name, i) => {
    const { token } = held.get(name)!;
    held.delete(name);
    // A bale that is not there any more has ended since, or was taken apart: it will be seen next time.
    const size = found[i] ? unpackJob(found[i]).size : 0;
    for (let at = 0; at < size; at++) held.set(`${name.slice(1)}.${at}`, { token, isBaled: true });
  });
  return held;
}

function untie(lane: Buffer, held: Map<string, Hold>): void {
  const knot = lane.indexOf('=');
  if (knot < 0) return;
  const token = lane.toString('latin1', lane.indexOf(':') + 1, knot);
  const names = lane.subarray(lane.indexOf(';', knot) + 1);
  readStrings(names, (start, end) => held.set(names.toString('utf8', start, end), { token, isBaled: false }));
}
