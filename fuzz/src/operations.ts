// What can be asked, read from the OpenAPI document of the server under test: a route that is not described is not tried, and another test
// sees to it that every route is described.
export type Schema = Record<string, unknown>;

export interface Operation {
  method: string;
  /** With its parameters in braces. */
  path: string;
  group: string;
  needs: 'nobody' | 'viewer' | 'operator' | 'admin';
  of: 'tenant' | 'installation';
  /** An upload token, a signed link or the key of a service may stand in for a key. */
  hasOtherWays: boolean;
  parameters: { name: string; in: string; schema: Schema }[];
  body?: { type: string; schema: Schema };
}

export function operationsOf(document: unknown): Operation[] {
  const { paths } = document as { paths: Record<string, Record<string, Loose>> };
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, described]) => {
      const [body] = Object.entries(described.requestBody?.content ?? {});
      return {
        method: method.toUpperCase(),
        path,
        group: described.tags?.[0] ?? '',
        needs: described['x-needs'],
        of: described['x-of'],
        hasOtherWays: ['x-tokens', 'x-links', 'x-service-key'].some((way) => described[way] === true),
        parameters: described.parameters ?? [],
        ...(body && { body: { type: body[0], schema: body[1].schema } }),
      };
    }),
  );
}

interface Loose {
  tags?: string[];
  parameters?: Operation['parameters'];
  requestBody?: { content: Record<string, { schema: Schema }> };
  'x-needs': Operation['needs'];
  'x-of': Operation['of'];
  [field: string]: unknown;
}
