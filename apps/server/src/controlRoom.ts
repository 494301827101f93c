// What operators see and do: questions about queues and caches, bulk operations, live updates. Needs the parts that files need.
import type { Alerts } from '@sluice/alerts';
import type { Logger } from '@sluice/base';
import type { Cache } from '@sluice/cache';
import { Control } from '@sluice/control';
import type { Inspect } from '@sluice/inspect';
import { Operations } from '@sluice/operations';
import type { Records } from '@sluice/records';
import { RedisLink } from '@sluice/redis';
import type { Route } from '@sluice/rest';
import type { Uploads } from '@sluice/upload';

export interface ControlRoomOptions {
  redisUrl: string;
  inspect: Inspect;
  alerts: Alerts;
  cache: Cache;
  records: Records;
  uploads: Uploads;
  logger: Logger;
}

export interface ControlRoom {
  readonly routes: readonly Route[];
  stop(deadlineMs: number): Promise<void>;
}

export async function openControlRoom(options: ControlRoomOptions): Promise<ControlRoom> {
  const { redisUrl, inspect, alerts, cache, records, uploads, logger } = options;
  const queueNamed = (name: string) => inspect.find(name);
  const operations = new Operations({ redis: redisUrl, queueNamed, logger });
  const events = new RedisLink(redisUrl, { name: 'sluice-control' });
  await operations.work().start();
  const control = new Control({ inspect, alerts, operations, cache, records, uploads, events, logger });
  return {
    routes: control.routes,
    stop: async (deadlineMs) => {
      control.close();
      await operations.close(deadlineMs);
      events.close();
    },
  };
}
