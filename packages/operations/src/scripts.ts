// The scripts of operations, with the names of their keys and arguments.
import { loadScript } from '@sluice/redis';

const folder = new URL('../../lua/', import.meta.url);

export const scripts = {
  begin: loadScript(folder, 'begin', ['list', 'record'], ['id', 'request', 'createdMs', 'keepMs', 'most']),
  report: loadScript(folder, 'report', ['record'], ['state', 'moved', 'total', 'nowMs', 'keepMs']),
  stop: loadScript(folder, 'stop', ['record'], ['by']),
} as const;
