// @sluice/rest: the HTTP interface: uploads, files, nodes, drives, keys, tokens and links.
export { notFound, rest, routes } from './rest.js';
export type { RestOptions } from './rest.js';
export { Access, defaultTenant } from './access.js';
export { serverOptions } from './serverOptions.js';
export type { AccessOptions, TenantKey, TenantRules } from './access.js';
export { restErrors } from './errors.js';
export { ServiceKeys } from './serviceKeys.js';
