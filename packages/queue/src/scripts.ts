// The scripts of the queue, one per transition (docs/states.md draws them), with the names of their keys and arguments.
import { loadScript } from '@sluice/redis';

const folder = new URL('../../lua/', import.meta.url);
const waits = ['wait0', 'wait1', 'wait2', 'wait3', 'wait4', 'wait5'] as const;
const groupKeys = ['groups', 'group', 'fresh', 'ring', 'groupActive'] as const;
const deadKeys = ['dead', 'deadInfo', 'deadGroup', 'deadGroups', 'deadTitles'] as const;
const traceKeys = ['tries', 'progress', 'logs', 'stats', 'events'] as const;
const endKeys = ['unique', 'ended', 'results', 'dependents', 'chained'] as const;

const addEachKeys = [
  ...(['cfg', 'jobs', 'producer', 'wake'] as const),
  ...waits,
  ...(['delayed', 'ended', 'results'] as const),
  ...groupKeys,
  ...(['unique', 'blocked', 'deps', 'dependents', 'chained', 'inbox'] as const),
  ...deadKeys,
  ...traceKeys,
] as const;
const addEachArguments = ['lane', 'seq', 'rememberMs', 'items', 'inboxTaken', 'inboxCount'] as const;

/** What a job that stops being active may touch. */
const leavingKeys = [
  ...(['cfg', 'sessions', 'active', 'jobs', 'wake'] as const),
  ...waits,
  'delayed',
  ...groupKeys,
  ...endKeys,
  ...deadKeys,
  ...traceKeys,
] as const;

/** Those that belong to no queue. */
export const sharedScripts = {
  enlist: loadScript(folder, 'enlist', ['queues'], ['name', 'partitions']),
} as const;

export const scripts = {
  declare: loadScript(folder, 'declare', ['cfg'], ['partitions', 'layout']),
  add: loadScript(
    folder,
    'add',
    ['cfg', 'jobs', 'producer', 'wake', ...waits],
    ['lane', 'seq', 'rememberMs', 'entries', 'priority', 'baled'],
    ['bale'],
  ),
  addEach: loadScript(folder, 'addEach', addEachKeys, addEachArguments, ['place', 'finish', 'bale']),
  /** Messages in the inbox take memory already: making them jobs frees it, so it is allowed when memory is full. */
  intake: loadScript(
    folder,
    'addEach',
    addEachKeys,
    addEachArguments,
    ['place', 'finish', 'bale'],
    '#!lua flags=allow-oom',
  ),
  open: loadScript(
    folder,
    'open',
    ['cfg', 'sessions', 'rescuing', 'active', 'lanes'],
    ['session', 'leaseMs', 'description', 'draining'],
    ['lease'],
  ),
  renew: loadScript(
    folder,
    'renew',
    ['cfg', 'sessions', 'lanes'],
    ['session', 'leaseMs', 'drained'],
    ['lease'],
  ),
  drain: loadScript(folder, 'drain', ['sessions', 'active', 'lanes'], ['session', 'worker', 'wished']),
  close: loadScript(
    folder,
    'close',
    ['cfg', 'sessions', 'active', 'lanes', 'wake'],
    ['session'],
    ['bale', 'sheaf'],
  ),
  rescue: loadScript(
    folder,
    'rescue',
    [
      ...(['cfg', 'sessions', 'rescuing', 'active', 'lanes', 'jobs', 'suspects', 'wake', 'tries'] as const),
      ...waits,
      'delayed',
      ...groupKeys,
    ],
    ['leaseMs', 'chunk'],
    ['place', 'lease', 'bale', 'sheaf'],
  ),
  claim: loadScript(
    folder,
    'claim',
    [
      ...(['cfg', 'sessions', 'rescuing', 'active', 'lanes', 'jobs', 'wake'] as const),
      ...waits,
      ...(['delayed', 'suspects', 'inbox'] as const),
      ...groupKeys,
      ...(['groupRate', 'parked', 'rate', 'dependents', 'chained', 'ticks', 'stats', 'events'] as const),
    ],
    ['session', 'lane', 'seq', 'want', 'list', 'runs', 'whole', 'tie', 'idle'],
    ['place', 'bale', 'pop', 'sheaf', 'acknowledge'],
  ),
  take: loadScript(
    folder,
    'take',
    ['cfg', 'active', 'lanes', 'jobs', 'wake', 'wait', 'dependents', 'stats'],
    ['session', 'lane', 'seq', 'want', 'list', 'runs', 'whole', 'tie', 'level'],
    ['bale', 'pop', 'sheaf', 'acknowledge'],
  ),
  settle: loadScript(
    folder,
    'settle',
    leavingKeys,
    ['session', 'items'],
    ['place', 'finish', 'bale', 'sheaf'],
  ),
  retry: loadScript(folder, 'retry', leavingKeys, ['session', 'items'], ['place', 'finish', 'bale', 'sheaf']),
  note: loadScript(
    folder,
    'note',
    ['sessions', 'active', 'jobs', 'progress', 'logs'],
    ['session', 'id', 'token', 'kind', 'value', 'keep'],
    ['bale', 'sheaf'],
  ),
  cancel: loadScript(
    folder,
    'cancel',
    [
      ...(['cfg', 'sessions', 'rescuing', 'active', 'lanes', 'jobs', 'wake'] as const),
      ...waits,
      ...(['delayed', 'suspects'] as const),
      ...groupKeys,
      ...endKeys,
      ...(['blocked', 'deps'] as const),
      ...deadKeys,
      ...traceKeys,
    ],
    ['id', 'keepMs'],
    ['place', 'finish', 'bale', 'sheaf'],
  ),
  rule: loadScript(
    folder,
    'rule',
    ['cfg', 'wake', 'jobs', ...waits, 'delayed', ...groupKeys, 'parked', 'rate'],
    ['changes'],
    ['place'],
  ),
  peek: loadScript(folder, 'peek', ['cfg', 'inbox'], ['count']),
  sweep: loadScript(folder, 'sweep', ['ended', 'results', 'logs'], ['limit']),
  deaths: loadScript(folder, 'deaths', ['dead', 'deadGroup'], ['print', 'atMs', 'atId', 'order', 'limit']),
  letters: loadScript(
    folder,
    'letters',
    ['jobs', 'dead', 'deadInfo', 'deadTitles', 'tries'],
    ['ids', 'maxBytes'],
  ),
  causes: loadScript(folder, 'causes', ['deadGroup', 'deadGroups', 'deadTitles'], ['prints']),
  replay: loadScript(
    folder,
    'replay',
    [
      'cfg',
      'jobs',
      'wake',
      ...waits,
      'delayed',
      ...groupKeys,
      ...endKeys,
      ...deadKeys,
      ...traceKeys,
      'replays',
    ],
    ['operation', 'ids'],
    ['place', 'finish', 'operation'],
  ),
  discard: loadScript(
    folder,
    'discard',
    [
      'cfg',
      'jobs',
      'wake',
      ...waits,
      'delayed',
      ...groupKeys,
      ...endKeys,
      ...deadKeys,
      ...traceKeys,
      'replays',
    ],
    ['operation', 'ids'],
    ['place', 'finish', 'operation'],
  ),
  expire: loadScript(
    folder,
    'expire',
    ['cfg', 'jobs', 'wake', ...waits, 'delayed', ...groupKeys, ...endKeys, ...deadKeys, ...traceKeys],
    ['limit'],
    ['place', 'finish'],
  ),
  edit: loadScript(folder, 'edit', ['jobs', 'dead'], ['id', 'seen', 'replacement']),
  unblock: loadScript(
    folder,
    'unblock',
    [
      ...(['cfg', 'jobs', 'wake'] as const),
      ...waits,
      'delayed',
      ...groupKeys,
      ...endKeys,
      ...(['blocked', 'deps'] as const),
      ...deadKeys,
      ...traceKeys,
    ],
    ['id', 'ref', 'outcome'],
    ['place', 'finish'],
  ),
  depend: loadScript(
    folder,
    'depend',
    ['cfg', 'sessions', 'active', 'jobs', 'dead', 'ended', 'results', 'dependents'],
    ['id', 'target', 'rememberMs'],
    ['bale', 'sheaf'],
  ),
  chainKeep: loadScript(folder, 'chainKeep', ['chains', 'chainsDue'], ['chain', 'spec', 'pauseMs']),
  chainTake: loadScript(folder, 'chainTake', ['chains', 'chainsDue'], ['limit', 'pauseMs']),
  chainDrop: loadScript(folder, 'chainDrop', ['chains', 'chainsDue'], ['chain']),
  schedule: loadScript(folder, 'schedule', ['schedules', 'ticks', 'wake'], ['name', 'spec', 'next']),
  unschedule: loadScript(folder, 'unschedule', ['schedules', 'ticks'], ['name']),
  due: loadScript(folder, 'due', ['schedules', 'ticks'], ['limit']),
  tick: loadScript(
    folder,
    'tick',
    [
      ...(['cfg', 'jobs', 'wake'] as const),
      ...waits,
      'delayed',
      ...groupKeys,
      ...(['unique', 'ended', 'schedules', 'ticks', 'events'] as const),
    ],
    ['name', 'due', 'next', 'ids', 'packed'],
    ['place'],
  ),
  tally: loadScript(folder, 'tally', ['stats'], ['counts']),
  ask: loadScript(folder, 'ask', ['jobs', 'dead', 'ended', 'results'], ['id'], ['bale']),
  look: loadScript(
    folder,
    'look',
    [
      ...([
        'sessions',
        'rescuing',
        'active',
        'jobs',
        'delayed',
        'ended',
        'results',
        'blocked',
        'deps',
      ] as const),
      ...(['dead', 'deadInfo', 'groups', 'tries', 'progress', 'logs'] as const),
    ],
    ['id'],
    ['bale', 'sheaf'],
  ),
  browse: loadScript(
    folder,
    'browse',
    [
      ...(['sessions', 'rescuing', 'active', 'jobs'] as const),
      ...waits,
      ...(['suspects', 'groups', 'group', 'blocked'] as const),
    ],
    ['shelf', 'at', 'limit'],
    ['bale', 'sheaf'],
  ),
  glance: loadScript(folder, 'glance', ['jobs', 'results'], ['ids', 'maxBytes'], ['bale']),
  crew: loadScript(folder, 'crew', ['sessions', 'active', 'lanes'], ['limit'], ['bale', 'sheaf']),
  count: loadScript(
    folder,
    'count',
    [
      ...(['cfg', 'sessions', 'rescuing', 'active', 'jobs'] as const),
      ...waits,
      ...(['delayed', 'suspects', 'inbox', 'blocked', 'dead', 'ended', 'group', 'fresh', 'ring'] as const),
    ],
    [],
    ['bale', 'sheaf'],
  ),
} as const;
