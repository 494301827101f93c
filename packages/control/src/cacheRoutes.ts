// The cache: how each family does and did, why a value is in the state it is in, and make it go; of families that any process has opened.
import { isSluiceError } from '@sluice/base';
import { ForeignFamily, type CacheFamily } from '@sluice/cache';
import { restErrors, type JsonSchema, type Route } from '@sluice/rest';
import { controlErrors } from './errors.js';
import type { ControlParts } from './parts.js';
import { seriesRoute } from './seriesRoute.js';

const key: JsonSchema = {
  type: 'string',
  description: 'The key as JSON, as the family takes it: "17" or {"id":"17"}',
};

export function cacheRoutes({ cache, inspect }: ControlParts): Route[] {
  const family = async (name: string): Promise<CacheFamily<unknown, unknown> | ForeignFamily> => {
    const here = cache.families();
    const found = here.find((one) => one.name === name);
    if (found) return found;
    const published = (await inspect.caches())?.families.map((one) => one.family) ?? [];
    if (published.includes(name)) return cache.foreign(name);
    const known = new Set([...here.map((one) => one.name), ...published]);
    throw controlErrors.FAMILY_NOT_FOUND({ family: name, known: [...known].join(', ') });
  };
  return [
    {
      method: 'GET',
      url: '/v1/cache',
      needs: 'viewer',
      of: 'installation',
      summary: 'Hits, misses, loads and their times, per family, of all servers together.',
      answers: '200 {families, …}',
      handle: () => inspect.caches(),
    },
    seriesRoute(inspect, '/v1/cache/:family/series', 'a family, or of all with *', ({ family: name }) => ({
      cache: name!,
    })),
    {
      method: 'GET',
      url: '/v1/cache/:family/explain',
      needs: 'viewer',
      of: 'installation',
      summary: 'Why a value is in the state it is in.',
      answers: '200 and what decides about it',
      query: { key },
      handle: async ({ params, query }) => {
        const of = await family(params['family']!);
        return understood(() => of.explain(keyOf(query['key'])));
      },
    },
    {
      method: 'GET',
      url: '/v1/cache/:family/entry',
      needs: 'viewer',
      of: 'installation',
      summary:
        'The value as readers get it; loads it if it is not there. What only other processes can load is answered from Redis.',
      answers: '200 {value}',
      query: { key },
      handle: async ({ params, query }) => {
        const of = await family(params['family']!);
        const key = keyOf(query['key']);
        if (!(of instanceof ForeignFamily)) return { value: (await understood(() => of.get(key))) ?? null };
        const found = await understood(() => of.peek(key));
        if (!found) throw controlErrors.VALUE_NOT_FOUND({ family: of.name });
        return { value: found.value ?? null };
      },
    },
    {
      method: 'POST',
      url: '/v1/cache/:family/invalidate',
      needs: 'operator',
      of: 'installation',
      audit: 'cache.invalidate',
      summary: 'Make one value worthless, or all values of a group.',
      answers: '200 {invalidated}',
      body: {
        type: 'object',
        minProperties: 1,
        maxProperties: 1,
        additionalProperties: false,
        properties: {
          key: {},
          group: {
            description:
              'The name of a group, with its parts if it has some: "vector:search" or ["graph", "17"].',
            anyOf: [
              { type: 'string', minLength: 1, maxLength: 1_000 },
              { type: 'array', minItems: 1, maxItems: 10, items: { type: 'string', maxLength: 1_000 } },
            ],
          },
        },
      },
      handle: async ({ params, request, note }) => {
        const name = params['family']!;
        const body = request.body as { key?: unknown; group?: string | [string, ...string[]] };
        note({ family: name, what: JSON.stringify(body).slice(0, 500) });
        // A group is known by its name, and may outlive the last process that opened its family.
        if (body.group !== undefined) return { invalidated: await cache.invalidateGroup(body.group) };
        const of = await family(name);
        return { invalidated: await understood(() => of.invalidate(body.key)) };
      },
    },
  ];
}

function keyOf(text: string | undefined): unknown {
  if (text === undefined) throw restErrors.REQUEST_INVALID({ reason: 'name the key: ?key="17"' });
  const key = parsed(text);
  if (hasNul(key)) throw restErrors.REQUEST_INVALID({ reason: 'there is a NUL in the key' });
  return key;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // A plain word is meant as it stands.
    return text;
  }
}

/** PostgreSQL knows no NUL: no loader finds anything with one. */
function hasNul(key: unknown): boolean {
  if (typeof key === 'string') return key.includes('\0');
  return typeof key === 'object' && key !== null && Object.values(key).some(hasNul);
}

/** A key of another shape than the family's makes its own function fail; that is the asker's mistake. */
async function understood<T>(ask: () => T | Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (
      error instanceof TypeError ||
      isSluiceError(error, 'KEY_INVALID') ||
      isSluiceError(error, 'PARTS_WANTED')
    )
      throw restErrors.REQUEST_INVALID({
        reason: `the family cannot make a name of this key (${error.message})`,
      });
    throw error;
  }
}
