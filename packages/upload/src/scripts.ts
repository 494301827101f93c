// The scripts of uploads, one per transition (docs/states.md draws them), with the names of their keys and arguments.
import { loadScript } from '@sluice/redis';

const folder = new URL('../../lua/', import.meta.url);
/** What the shared functions of upload.lua may touch, in the order in which most scripts declare it. */
const all = [
  ...(['state', 'chunks', 'held', 'parts', 'fill', 'window', 'attempts', 'progress'] as const),
  ...(['attention', 'budget'] as const),
] as const;
const shared = ['upload'];

export const scripts = {
  initiate: loadScript(folder, 'initiate', ['state', 'attention'], ['id', 'fields', 'idleMs']),
  admit: loadScript(
    folder,
    'admit',
    ['state', 'parts', 'fill', 'attempts', 'budget', 'chunks', 'held', 'window', 'progress', 'attention'],
    [
      ...(['id', 'name', 'attempt', 'offset', 'bytes', 'price', 'frames'] as const),
      ...(['budgetBytes', 'uploadBytes', 'attemptMs'] as const),
    ],
    shared,
  ),
  extend: loadScript(folder, 'extend', ['attempts'], ['attempt', 'attemptMs']),
  release: loadScript(
    folder,
    'release',
    ['state', 'attempts', 'budget', 'chunks', 'held', 'parts', 'fill', 'window', 'progress', 'attention'],
    ['id', 'attempt'],
    shared,
  ),
  commit: loadScript(
    folder,
    'commit',
    all,
    [
      ...(['id', 'name', 'number', 'offset', 'length', 'crc64', 'pieces'] as const),
      ...(['last', 'sha256', 'maxChunks', 'maxParts', 'lookMs'] as const),
    ],
    shared,
  ),
  stored: loadScript(
    folder,
    'stored',
    all,
    ['id', 'part', 'start', 'length', 'etag', 'crc64', 'key', 'extents', 'lookMs'],
    shared,
  ),
  lose: loadScript(
    folder,
    'lose',
    all,
    ['id', 'source', 'part', 'etag', 'multipartId', 'fence', 'lookMs'],
    shared,
  ),
  tended: loadScript(folder, 'tended', all, ['id', 'updatedAt', 'isQuiet', 'nextAt'], shared),
  spilled: loadScript(
    folder,
    'spilled',
    all,
    ['id', 'start', 'length', 'key', 'extents', 'name', 'waiting'],
    shared,
  ),
  claimed: loadScript(folder, 'claimed', ['state'], ['bytes']),
  multipart: loadScript(folder, 'multipart', ['state'], ['multipartId']),
  declare: loadScript(folder, 'declare', all, ['id', 'size', 'sha256', 'seen', 'lookMs'], shared),
  completing: loadScript(folder, 'completing', all, ['id', 'holder', 'leaseMs'], shared),
  renew: loadScript(folder, 'renew', ['state', 'attention'], ['id', 'fence', 'leaseMs']),
  ending: loadScript(folder, 'ending', ['state', 'attention'], ['id', 'status', 'code', 'reason', 'lookMs']),
  finish: loadScript(folder, 'finish', all, ['id', 'status', 'fields', 'keepMs', 'lookMs'], shared),
  renote: loadScript(folder, 'renote', ['state', 'attention'], ['id', 'idleMs']),
  forget: loadScript(folder, 'forget', ['state', 'attempts', 'attention'], ['id', 'lateMs']),
  overdue: loadScript(folder, 'overdue', ['attention', 'budget'], ['limit', 'pauseMs']),
};
