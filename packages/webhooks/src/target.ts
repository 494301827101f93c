// From the address of a webhook to the machines that will be connected to. A name is looked up once, every address that it has is
// checked, and the connection is made to those very addresses (send.ts): a name that means something else a moment later changes
// nothing. Spellings of IPv4 such as 2130706433, 0x7f.1 or 0177.0.0.1 are made plain by the URL parser before anybody looks.
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { withDeadline } from '@sluice/base';
import type { AllowedNetworks } from './address.js';
import { webhookErrors } from './errors.js';

const longestUrl = 2_048;
const usualPorts = new Set(['', '80', '443']);
/** Below are services of systems; mail and the like have no business with HTTP. */
const firstFreePort = 1_024;
const lookupMs = 5_000;

/** All addresses of a name. */
export type Resolve = (host: string) => Promise<string[]>;

export interface Target {
  url: URL;
  addresses: string[];
}

/** Says what is wrong with the text of an address, before any name is looked up. */
export function checkUrl(text: string): URL {
  if (text.length > longestUrl) throw refuse(`it has more than ${longestUrl} characters`);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url) throw refuse('it is no URL');
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw refuse('it is neither https nor http');
  if (url.username !== '' || url.password !== '') throw refuse('it contains credentials');
  if (!usualPorts.has(url.port) && Number(url.port) < firstFreePort)
    throw refuse(`port ${url.port} is neither 80, 443 nor above ${firstFreePort - 1}`);
  return url;
}

/** Throws ADDRESS_REFUSED if any address of the name is out of bounds, HOST_UNKNOWN if it has none. */
export async function findTarget(
  text: string,
  allowed: AllowedNetworks,
  resolve: Resolve = lookUp,
): Promise<Target> {
  const url = checkUrl(text);
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const addresses = isIP(host) ? [host] : await resolve(host);
  if (addresses.length === 0) throw webhookErrors.HOST_UNKNOWN({ host, reason: 'it has no address' });
  const refused = addresses.find((address) => !allowed.reaches(address));
  if (refused !== undefined) throw webhookErrors.ADDRESS_REFUSED({ host, address: refused });
  return { url, addresses };
}

const lookUp: Resolve = async (host) => {
  const late = () => new Error(`no answer within ${lookupMs} ms`);
  try {
    const found = await withDeadline(lookup(host, { all: true, verbatim: true }), lookupMs, late);
    return found.map(({ address }) => address);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw webhookErrors.HOST_UNKNOWN({ host, reason: code ?? message }, { cause: error });
  }
};

function refuse(reason: string): Error {
  return webhookErrors.WEBHOOK_INVALID({ field: 'url', reason });
}
