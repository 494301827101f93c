// Addresses that the client can use, also when it does not talk to us directly. Without configuration they have no host, so that they
// are right behind any proxy that keeps paths; a proxy that is trusted tells the rest; a public URL settles it.
import type { FastifyRequest } from 'fastify';

export interface LocationOptions {
  /** Where clients find this server, if that is not where they find the proxy's path: `https://files.example.com/api`. */
  publicUrl?: string;
  /** Whether X-Forwarded-Proto, -Host and -Prefix are believed. */
  trustProxy?: boolean;
}

export function locationOf(options: LocationOptions, request: FastifyRequest, path: string): string {
  if (options.publicUrl !== undefined) return options.publicUrl.replace(/\/+$/, '') + path;
  if (!options.trustProxy) return path;
  const forwarded = (name: string): string | undefined => {
    const value = request.headers[`x-forwarded-${name}`];
    return (Array.isArray(value) ? value[0] : value)?.split(',')[0]?.trim();
  };
  const prefix = forwarded('prefix');
  const rest = (prefix !== undefined && /^(\/[\w.~-]+)+$/.test(prefix) ? prefix : '') + path;
  const [proto, host] = [forwarded('proto'), forwarded('host')];
  const isWhole = (proto === 'http' || proto === 'https') && host !== undefined && /^[\w.:[\]-]+$/.test(host);
  return isWhole ? `${proto}://${host}${rest}` : rest;
}
