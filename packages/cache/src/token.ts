// Tokens that nobody else has: of leases and of generations. A process draws a long random beginning once and counts from there,
// because a miss would otherwise wait for the system's random numbers several times.
import { randomBytes } from 'node:crypto';

const beginningBytes = 12;
const base = 36;
const beginning = randomBytes(beginningBytes).toString('base64url');
let count = 0;

export function makeToken(): string {
  return `${beginning}.${(count++).toString(base)}`;
}
