// How a request says whose webhooks are meant: those of the whole installation by a query, those of a tenant by a header.
import type { CallOptions } from '../data/api.js';

export const everything = '*';

export function scope(tenant: string | undefined): Pick<CallOptions, 'query' | 'tenant'> {
  if (tenant === everything) return { query: { tenant } };
  return tenant === undefined ? {} : { tenant };
}
