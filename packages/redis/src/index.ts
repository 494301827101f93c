// @sluice/redis: connections with manners, and scripts with names.
export { RedisLink, defaultDeadlineMs } from './link.js';
export type { CallOptions, LinkOptions } from './link.js';
export { KeyWatch } from './keyWatch.js';
export type { KeyWatchOptions } from './keyWatch.js';
export { loadScript } from './script.js';
export type { Script, ScriptArgument } from './script.js';
export { parseTarget, describeTarget } from './target.js';
export type { RedisTarget, TlsFiles } from './target.js';
export { redisErrors } from './errors.js';
