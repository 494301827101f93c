// @sluice/access: who is asking, and what they may do: keys with roles, tokens, links.
export { Access, demand } from './access.js';
export type { AccessOptions, ConfiguredKey, Demand, Headers } from './access.js';
export { accessErrors } from './errors.js';
export { nobody } from './principal.js';
export type { Principal, Scope, TenantRules, Via } from './principal.js';
export { isRole, reaches, roles } from './role.js';
export type { Role } from './role.js';
export { checkScope, checkType, limitsOf, needKey } from './scope.js';
export { checkTenant, defaultTenant, installation } from './tenant.js';
