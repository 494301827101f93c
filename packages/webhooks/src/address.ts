// Which addresses a webhook may reach: those of the public network. Whoever may name an address could otherwise make this server talk
// to what only it can reach: other services on this machine, the network behind it, a cloud's metadata.
//
// IPv4 is allowed but for the ranges that are set aside (RFC 6890). IPv6 is the other way round: only global unicast (2000::/3) is
// allowed, and of that not what leads elsewhere: 6to4 and Teredo carry an IPv4 address inside, as do mapped addresses and NAT64, which
// are outside of it anyway.
import { BlockList, isIP } from 'node:net';
import { webhookErrors } from './errors.js';

const notPublicV4: [network: string, bits: number][] = [
  ['0.0.0.0', 8], // this network
  ['10.0.0.0', 8], // private
  ['100.64.0.0', 10], // carrier-grade NAT
  ['127.0.0.0', 8], // loopback
  ['169.254.0.0', 16], // link-local, and the metadata of clouds
  ['172.16.0.0', 12], // private
  ['192.0.0.0', 24], // protocol assignments
  ['192.0.2.0', 24], // documentation
  ['192.88.99.0', 24], // 6to4 relays
  ['192.168.0.0', 16], // private
  ['198.18.0.0', 15], // benchmarks
  ['198.51.100.0', 24], // documentation
  ['203.0.113.0', 24], // documentation
  ['224.0.0.0', 4], // multicast
  ['240.0.0.0', 4], // reserved, and broadcast
];
const globalV6: [string, number] = ['2000::', 3];
const notPublicV6: [network: string, bits: number][] = [
  ['2001::', 23], // protocol assignments, Teredo
  ['2001:db8::', 32], // documentation
  ['2002::', 16], // 6to4
  ['3fff::', 20], // documentation
];

const refusedV4 = listOf('ipv4', notPublicV4);
const refusedV6 = listOf('ipv6', notPublicV6);
const global = listOf('ipv6', [globalV6]);

function listOf(family: 'ipv4' | 'ipv6', networks: [string, number][]): BlockList {
  const list = new BlockList();
  for (const [network, bits] of networks) list.addSubnet(network, bits, family);
  return list;
}

/** Networks that are reachable although they are not public. */
export class AllowedNetworks {
  readonly #list = new BlockList();

  /** `10.1.0.0/16`, `fd00::/8`, or one address. */
  constructor(networks: readonly string[] = []) {
    for (const network of networks) this.#add(network);
  }

  /** Whether a webhook may reach this address. */
  reaches(address: string): boolean {
    const family = familyOf(address);
    if (family === undefined) return false;
    return this.#list.check(address, family) || isPublic(address, family);
  }

  #add(network: string): void {
    const [address = '', bits] = network.split('/');
    const family = familyOf(address);
    const most = family === 'ipv4' ? 32 : 128;
    const length = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
    if (family === undefined || !(length <= most))
      throw webhookErrors.WEBHOOK_INVALID({ field: 'allow', reason: `"${network}" is no network` });
    this.#list.addSubnet(address, length, family);
  }
}

function isPublic(address: string, family: 'ipv4' | 'ipv6'): boolean {
  if (family === 'ipv4') return !refusedV4.check(address, family);
  return global.check(address, family) && !refusedV6.check(address, family);
}

/** Undefined for anything that is no plain address, one with a zone (`fe80::1%eth0`) included. */
function familyOf(address: string): 'ipv4' | 'ipv6' | undefined {
  if (address.includes('%')) return undefined;
  return ({ 4: 'ipv4', 6: 'ipv6' } as const)[isIP(address) as 4 | 6];
}
