// What the holder of a token is held to: a place, a size, types.
import { checkName, checkPath, type Limits } from '@sluice/records';
import { accessErrors } from './errors.js';
import type { Principal, Scope } from './principal.js';

/** The scope with its names as the records keep them, so that it is compared with what will be there. */
export function checkedScope({ drive, path, pathPrefix, ...rest }: Scope): Scope {
  if (path !== undefined && pathPrefix !== undefined)
    throw accessErrors.SCOPE_INVALID({ reason: 'it is for a path or for a pathPrefix, not for both' });
  const folder = pathPrefix?.replace(/\/$/, '');
  return {
    ...rest,
    drive: checkName(drive),
    ...(path !== undefined && { path: checkPath(path) }),
    ...(folder !== undefined && { pathPrefix: folder === '' ? '' : checkPath(folder) }),
  };
}

/** Refuses what a token does not cover. The path is one that `checkPath` returned: nothing in it leads elsewhere. */
export function checkScope({ scope }: Principal, drive: string, path: string): void {
  if (!scope) return;
  const isInside =
    scope.drive === drive &&
    (scope.path !== undefined ? scope.path === path : path.startsWith(withSlash(scope.pathPrefix ?? '')));
  if (!isInside) throw accessErrors.FORBIDDEN({ reason: 'the token is for another place' });
}

/** Refuses whatever a token cannot do at all. */
export function needKey({ scope }: Principal): void {
  if (scope) throw accessErrors.FORBIDDEN({ reason: 'a token is for uploads only; use a key' });
}

/** The limits of the tenant and of the token together. */
export function limitsOf({ rules, scope }: Principal): Limits {
  const { types: _, ...limits } = rules;
  const most = Math.min(limits.maxFileBytes ?? Infinity, scope?.maxBytes ?? Infinity);
  return { ...limits, ...(most !== Infinity && { maxFileBytes: most }) };
}

export function checkType({ rules, scope }: Principal, type: string | undefined): void {
  for (const allowed of [rules.types, scope?.types]) {
    if (!allowed) continue;
    const plain = (type ?? 'application/octet-stream').split(';')[0]!.trim().toLowerCase();
    const isAllowed = allowed
      .map((rule) => rule.toLowerCase())
      .some((rule) => rule === plain || (rule.endsWith('/*') && plain.startsWith(rule.slice(0, -1))));
    if (!isAllowed) throw accessErrors.TYPE_REFUSED({ type: plain, allowed: allowed.join(', ') });
  }
}

function withSlash(prefix: string): string {
  return prefix === '' || prefix.endsWith('/') ? prefix : `${prefix}/`;
}
