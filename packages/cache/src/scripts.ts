// The scripts of the cache, with the names of their keys and arguments. None of them is on the path of a hit.
import { loadScript } from '@sluice/redis';

const folder = new URL('../../lua/', import.meta.url);

export const scripts = {
  lease: loadScript(folder, 'lease', ['lease'], ['token', 'leaseMs', 'force']),
  renew: loadScript(folder, 'renew', ['lease'], ['token', 'leaseMs']),
  release: loadScript(folder, 'release', ['lease'], ['token']),
  fill: loadScript(folder, 'fill', ['value', 'lease'], ['token', 'envelope', 'keepMs']),
  join: loadScript(folder, 'join', ['indexes', 'members'], ['generation', 'entries', 'most']),
  publish: loadScript(folder, 'publish', ['statistics', 'published'], ['process', 'text', 'keepMs']),
  generation: loadScript(folder, 'generation', ['generation'], ['token', 'keepMs']),
} as const;
