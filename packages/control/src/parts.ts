// What the routes of this package stand on. They are made with it, so that the interface for files knows nothing of queues.
import type { Alerts } from '@sluice/alerts';
import type { Cache } from '@sluice/cache';
import type { Inspect } from '@sluice/inspect';
import type { Operations } from '@sluice/operations';
import type { Records } from '@sluice/records';
import type { RedisLink } from '@sluice/redis';
import type { Uploads } from '@sluice/upload';

export interface ControlParts {
  inspect: Inspect;
  alerts: Pick<Alerts, 'list'>;
  operations: Operations;
  cache: Cache;
  records: Records;
  uploads: Uploads;
  /** Where published events are. */
  events: RedisLink;
}
