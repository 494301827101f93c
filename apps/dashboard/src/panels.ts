// The registry of panels on the overview, from top to bottom. A new part adds its panel here: it gets the latest overview and its history,
// and asks for the rest itself.
import type { ComponentType } from 'preact';
import type { Answer } from './data/answer.js';
import type { History } from './data/history.js';
import type { Overview } from './data/shapes.js';
import { AttentionPanel } from './panels/attention.js';
import { CachePanel } from './panels/cache.js';
import { DeadPanel } from './panels/dead.js';
import { FailureChart, LatencyChart, ThroughputChart } from './panels/charts.js';
import { FilesPanel } from './panels/files.js';
import { KeyFigures } from './panels/keyFigures.js';
import { QueuesPanel } from './panels/queues.js';
import { RedisPanel } from './panels/redis.js';
import { RetriesPanel } from './panels/retries.js';
import { StartPanel } from './panels/start.js';
import { TargetsPanel } from './panels/targets.js';

export interface PanelProps {
  overview: Overview;
  history: Pick<Answer<History>, 'data' | 'error'>;
}

export interface PanelEntry {
  name: string;
  /** Of twelve columns. */
  size: 'full' | 'half' | 'third' | 'two-thirds';
  panel: ComponentType<PanelProps>;
}

export const panels: readonly PanelEntry[] = [
  { name: 'key figures', size: 'full', panel: KeyFigures },
  { name: 'start', size: 'full', panel: StartPanel },
  { name: 'attention', size: 'full', panel: AttentionPanel },
  { name: 'throughput', size: 'third', panel: ThroughputChart },
  { name: 'latency', size: 'third', panel: LatencyChart },
  { name: 'failures', size: 'third', panel: FailureChart },
  { name: 'dead letters', size: 'half', panel: DeadPanel },
  { name: 'retries', size: 'half', panel: RetriesPanel },
  { name: 'targets', size: 'two-thirds', panel: TargetsPanel },
  { name: 'files', size: 'third', panel: FilesPanel },
  { name: 'cache', size: 'half', panel: CachePanel },
  { name: 'redis', size: 'half', panel: RedisPanel },
  { name: 'queues', size: 'full', panel: QueuesPanel },
];
