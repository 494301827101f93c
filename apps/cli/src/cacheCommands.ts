// `sluice cache`: how well it works, what is in it and why, and how to drop it.
import { pathOf } from './api.js';
import { declare, dryRunOption, group, yesOption, type SluiceCommand } from './command.js';
import type { ChangeOptions, Context } from './context.js';
import { cliErrors } from './errors.js';
import { bytes, count, duration, percent } from './human.js';
import { parseLoose } from './parse.js';
import { all } from './queueCommands.js';
import type { CacheFamilyRow, Explanation } from './replies.js';
import { safeBlock } from './sanitise.js';
import type { Column } from './table.js';

const columns: Column<CacheFamilyRow>[] = [
  { title: 'FAMILY', value: ({ family }) => family, cut: true },
  { title: 'HIT RATE', value: ({ hitRate }) => percent(hitRate), align: 'right' },
  { title: 'READS', value: (row) => count(reads(row)), align: 'right' },
  {
    title: 'TTL LEFT',
    value: ({ averageRemainingTtlMs }) => duration(averageRemainingTtlMs),
    align: 'right',
    spare: true,
  },
  { title: 'HERE', value: ({ nearHits }) => count(nearHits), align: 'right', spare: true },
  { title: 'REDIS', value: ({ redisHits }) => count(redisHits), align: 'right', spare: true },
  { title: 'MISSES', value: ({ misses }) => count(misses), align: 'right' },
  { title: 'LOADS', value: ({ loads }) => count(loads), align: 'right' },
  {
    title: 'ERRORS',
    value: ({ loadErrors }) => count(loadErrors),
    align: 'right',
    style: ({ loadErrors }) => (loadErrors > 0 ? 'red' : undefined),
  },
  {
    title: 'LOAD TIME',
    value: ({ averageLoadMs }) => duration(averageLoadMs),
    align: 'right',
    spare: true,
  },
];

export function cacheCommands(program: SluiceCommand): void {
  const cache = group(program, 'cache', 'How well the cache works, what is in it, and how to drop it.')
    .example('cache stats', 'hit rates of all families')
    .example(`cache explain node '{"tenant":"acme","id":"0b1c"}'`, 'why a value is there, or not')
    .example(`cache invalidate node '{"tenant":"acme","id":"0b1c"}'`, 'the next reader loads it');
  declare(cache, 'stats', 'Hit rates, loads and errors of each family.')
    .example('cache stats', 'a table')
    .runs(async ({ api, out, show }) => {
      const reply = await api.get<{ families: CacheFamilyRow[] } | null>('/v1/cache');
      if (reply) await show(columns, all(reply.families));
      else out.say('this server has no cache');
    });
  declare(cache, 'get', 'A value as readers get it; it is loaded if it is not there.')
    .argument('<family>')
    .argument('<key>', 'JSON, or a text')
    .example(`cache get node '{"tenant":"acme","id":"0b1c"}'`, 'its JSON')
    .runs(async ({ api, out }, _flags: object, family: string, key: string) => {
      const entry = await api.get(pathOf`/v1/cache/${family}/entry`, { key: keyText(key) });
      out.one(entry, () => out.line(safeBlock(JSON.stringify(entry, undefined, 2))));
    });
  declare(cache, 'explain', 'Why a key is in the state that it is in.')
    .argument('<family>')
    .argument('<key>', 'JSON, or a text')
    .example(`cache explain node '{"tenant":"acme","id":"0b1c"}'`, 'in a sentence, with all that decides')
    .runs(async ({ api, out }, _flags: object, family: string, key: string) => {
      const explanation = await api.get<Explanation>(pathOf`/v1/cache/${family}/explain`, {
        key: keyText(key),
      });
      out.one(explanation, () => printExplanation(out, explanation));
    });
  declare(cache, 'invalidate', 'Drop a value, or all that belong to a group; the next reader loads it.')
    .argument('<family>')
    .argument('[key]', 'JSON, or a text')
    .example(`cache invalidate node '{"tenant":"acme","id":"0b1c"}'`, 'one value')
    .example(`cache invalidate node --group '["node:tree","acme"]' --yes`, 'all of a group')
    .option('--group <name>', 'all values of this group: its name, or JSON of its name and parts')
    .option(...dryRunOption)
    .option(...yesOption)
    .runs(async (context, flags: ChangeOptions & { group?: string }, family: string, key?: string) => {
      if ((key === undefined) === (flags.group === undefined))
        throw cliErrors.USAGE({ reason: 'name a key, or a --group' });
      const { api, out, confirm } = context;
      const body = key === undefined ? { group: parseLoose(flags.group!) } : { key: parseLoose(key) };
      const what = key === undefined ? `group ${flags.group} of ${family}` : `${family} ${key}`;
      if (flags.dryRun) return out.would({ family, ...body }, `${what}: would be dropped`);
      if (key === undefined) await confirm(`Drop the ${what}?`);
      const answer = await api.post<object>(pathOf`/v1/cache/${family}/invalidate`, body);
      out.did({ family, ...body, ...answer }, `${what}: dropped`);
    });
}

function reads({ nearHits, redisHits, staleServed, misses }: CacheFamilyRow): number {
  return nearHits + redisHits + staleServed + misses;
}

function printExplanation(
  out: Context['out'],
  { because, state, name, redisKey, near, redis, groups, lease, breaker }: Explanation,
): void {
  out.line(out.colour.bold(safeBlock(because)));
  out.pairs([
    ['value', name],
    ['state', state],
    ['key in Redis', redisKey],
    ['in the process', near ? `for another ${duration(near.remainingMs)}` : 'no'],
    [
      'in Redis',
      redis
        ? `${bytes(redis.bytes)}, fresh for ${duration(redis.freshForMs)}, kept for ${duration(redis.keptForMs)}`
        : 'no',
    ],
    ['took to load', redis ? duration(redis.loadMs) : undefined],
    ['being loaded', lease ? `for another ${duration(lease.remainingMs)} at most` : undefined],
    ['breaker', breaker],
    ...groups.map(
      ({ group, carried, current }) => [`group ${group}`, generation(redis, carried, current)] as const,
    ),
  ]);
}

/** A value is worthless once its group is of another generation; without a value there is nothing to compare. */
function generation(
  value: Explanation['redis'],
  carried: string | undefined,
  current: string | undefined,
): string | undefined {
  if (!value) return undefined;
  return carried === current ? 'unchanged' : `changed (${carried ?? 'none'} → ${current ?? 'none'})`;
}

/** A key travels as JSON. */
function keyText(text: string): string {
  return JSON.stringify(parseLoose(text));
}
