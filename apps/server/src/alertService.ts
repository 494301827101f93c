/** Alerts in this process: one that relays events judges; every one that answers requests says how it stands. */
import { Alerts, alertRoutes } from '@sluice/alerts';
import { isSluiceError, type Logger } from '@sluice/base';
import type { Inspect } from '@sluice/inspect';
import type { Route } from '@sluice/rest';
import type { Webhooks } from '@sluice/webhooks';
import type { Config } from './config.js';
import { serverErrors } from './errors.js';
import type { MetricsSource } from './http.js';

export interface AlertServiceOptions {
  config: Config;
  redisUrl: string;
  inspect: Inspect;
  webhooks: Webhooks;
  logger: Logger;
}

export interface AlertService {
  readonly alerts: Alerts;
  readonly routes: Route[];
  readonly metrics: MetricsSource;
  stop(deadlineMs: number): Promise<void>;
}

export async function startAlerts({
  config,
  redisUrl,
  inspect,
  webhooks,
  logger,
}: AlertServiceOptions): Promise<AlertService> {
  const alerts = openAlerts(config, () => {
    const { alertLimits, alertForMs: forMs, alertEveryMs: everyMs, publicUrl } = config;
    return new Alerts({
      ...{ inspect, webhooks, redis: redisUrl, limits: alertLimits, forMs, everyMs, logger },
      ...(publicUrl !== undefined && { publicUrl }),
    });
  });
  if (config.roles.has('relay')) await alerts.start();
  return {
    alerts,
    routes: alertRoutes(alerts),
    metrics: () => retryFigures(alerts).catch(() => ''),
    stop: (deadlineMs) => alerts.close(deadlineMs),
  };
}

/** What Prometheus could not work out from the figures of queues: it takes the dead letters. Nothing while it is not known. */
async function retryFigures(alerts: Alerts): Promise<string> {
  const name = 'sluice_retries_that_help_ratio';
  const help = 'Of the retries in the last hour, those that were not spent on jobs that died in the end.';
  const value = (await alerts.list()).find((row) => row.name === 'retrySuccess')?.value ?? null;
  return `# HELP ${name} ${help}\n# TYPE ${name} gauge\n${value === null ? '' : `${name} ${value}\n`}`;
}

function openAlerts({ alertLimits }: Config, open: () => Alerts): Alerts {
  try {
    return open();
  } catch (error) {
    if (!isSluiceError(error, 'THRESHOLD_INVALID')) throw error;
    const value = JSON.stringify(alertLimits);
    const wanted = error.message;
    throw serverErrors.BAD_CONFIG({ name: 'SLUICE_ALERTS', value, wanted }, { cause: error });
  }
}
