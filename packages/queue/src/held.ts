// What a session holds according to Redis: id → token. Most jobs have a field of their own in the session's hash; those of a
// quick claim lie together in the field of their lane (sheaf.lua).
import type { RedisLink } from '@sluice/redis';
import { readStrings } from './wire.js';

export async function readHeld(link: RedisLink, key: string): Promise<Map<string, string>> {
  const reply = (await link.call('HGETALL', [key])) as Buffer[];
  const held = new Map<string, string>();
  for (let i = 0; i < reply.length; i += 2) {
    const field = reply[i]!.toString();
    const value = reply[i + 1]!;
    if (!field.startsWith('#')) held.set(field, value.toString());
    else if (field !== '#') untie(value, held);
  }
  return held;
}

function untie(lane: Buffer, held: Map<string, string>): void {
  const knot = lane.indexOf('=');
  if (knot < 0) return;
  const token = lane.toString('latin1', lane.indexOf(':') + 1, knot);
  const ids = lane.subarray(knot + 1);
  readStrings(ids, (start, end) => held.set(ids.toString('utf8', start, end), token));
}
