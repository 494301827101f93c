// What a cache did in this process, in the text format that Prometheus scrapes. Labels are families, never keys.
import type { CacheStatistics, FamilyStatistics } from './statistics.js';

interface Metric {
  name: string;
  help: string;
  type: 'counter' | 'gauge';
}

interface FamilyMetric extends Metric {
  samples: (family: FamilyStatistics) => [label: string, value: number | undefined][];
}

interface CacheMetric extends Metric {
  value: (cache: CacheStatistics) => number;
}

const plain = (read: (family: FamilyStatistics) => number | undefined): FamilyMetric['samples'] => {
  return (family) => [['', read(family)]];
};

const familyMetrics: FamilyMetric[] = [
  {
    name: 'sluice_cache_reads_total',
    help: 'Reads by what answered them.',
    type: 'counter',
    samples: ({ nearHits, redisHits, staleServed, misses }) => [
      [',from="process"', nearHits],
      [',from="redis"', redisHits],
      [',from="stale"', staleServed],
      [',from="load"', misses],
    ],
  },
  {
    name: 'sluice_cache_negative_hits_total',
    help: 'Reads answered by the memory that there is nothing.',
    type: 'counter',
    samples: plain(({ negativeHits }) => negativeHits),
  },
  {
    name: 'sluice_cache_loads_total',
    help: 'Values that were loaded, by how it ended.',
    type: 'counter',
    samples: ({ loaded, loadErrors }) => [
      [',outcome="loaded"', loaded],
      [',outcome="failed"', loadErrors],
    ],
  },
  {
    name: 'sluice_cache_load_seconds_total',
    help: 'Time spent in loaders.',
    type: 'counter',
    samples: plain(({ loadMs }) => loadMs / 1_000),
  },
  {
    name: 'sluice_cache_wait_seconds_total',
    help: 'Time that callers waited for values: for Redis and for loads.',
    type: 'counter',
    samples: plain(({ waitedMs }) => waitedMs / 1_000),
  },
  {
    name: 'sluice_cache_coalesced_readers_total',
    help: 'Readers served by a load that another reader had begun.',
    type: 'counter',
    samples: plain(({ coalesced }) => coalesced),
  },
  {
    name: 'sluice_cache_bypassed_loads_total',
    help: 'Loads that went past Redis because it was away.',
    type: 'counter',
    samples: plain(({ bypassed }) => bypassed),
  },
  {
    name: 'sluice_cache_early_refreshes_total',
    help: 'Refreshes that were begun before the value expired.',
    type: 'counter',
    samples: plain(({ earlyRefreshes }) => earlyRefreshes),
  },
  {
    name: 'sluice_cache_refused_fills_total',
    help: 'Loaded values that were not stored, because they were invalidated meanwhile or Redis refused.',
    type: 'counter',
    samples: plain(({ fillsRefused }) => fillsRefused),
  },
  {
    name: 'sluice_cache_average_remaining_ttl_seconds',
    help: 'How long values that were read from Redis would still have been fresh.',
    type: 'gauge',
    samples: plain(({ averageRemainingTtlMs: ms }) => (ms === undefined ? undefined : ms / 1_000)),
  },
];

const cacheMetrics: CacheMetric[] = [
  {
    name: 'sluice_cache_breaker_open',
    help: 'Whether Redis is away: 1 or 0.',
    type: 'gauge',
    value: ({ breaker }) => (breaker === 'open' ? 1 : 0),
  },
  {
    name: 'sluice_cache_breaker_openings_total',
    help: 'How often Redis went away.',
    type: 'counter',
    value: ({ breakerOpenings }) => breakerOpenings,
  },
  {
    name: 'sluice_cache_near_entries',
    help: 'Copies in this process.',
    type: 'gauge',
    value: ({ nearEntries }) => nearEntries,
  },
  {
    name: 'sluice_cache_near_bytes',
    help: 'Their size in Redis.',
    type: 'gauge',
    value: ({ nearBytes }) => nearBytes,
  },
  {
    name: 'sluice_cache_kept_invalidations',
    help: 'Invalidations that wait for Redis.',
    type: 'gauge',
    value: ({ keptInvalidations }) => keptInvalidations,
  },
  {
    name: 'sluice_cache_freed_values_total',
    help: 'Values of invalidated groups that were removed from Redis.',
    type: 'counter',
    value: ({ freedValues }) => freedValues,
  },
];

/** Answer with the content type `text/plain; version=0.0.4`. */
export function prometheusText(statistics: CacheStatistics): string {
  const ofFamilies = familyMetrics.map((metric) =>
    write(
      metric,
      statistics.families.flatMap((family) =>
        metric
          .samples(family)
          .filter(([, value]) => value !== undefined)
          .map(([label, value]) => `{family="${family.family}"${label}} ${value}`),
      ),
    ),
  );
  const ofCache = cacheMetrics.map((metric) => write(metric, [` ${metric.value(statistics)}`]));
  return [...ofFamilies, ...ofCache].join('');
}

function write({ name, help, type }: Metric, samples: string[]): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${samples.map((sample) => `${name}${sample}\n`).join('')}`;
}
