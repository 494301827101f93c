// What the server answers. The types are those of the packages that make the answers, so that a field which is renamed there does not
// compile here; only types are taken, nothing of these packages is loaded. Another version of the server may leave out a part of its
// overview, which must not break the view of the others.
import type { Overview as WholeOverview } from '@sluice/control';

export type { AlertRow } from '@sluice/alerts';
export type { Explanation } from '@sluice/cache';
export type { Attention, JobReply } from '@sluice/control';
export type {
  CacheFamilyRow,
  DeadGroup,
  DeadGroups,
  JobRow,
  QueueDetail,
  QueueSnapshot,
  RedisHealth,
  RetryRow,
  ScheduleRow,
  WorkerRow,
} from '@sluice/inspect';
export type { Operation, OperationPreview } from '@sluice/operations';
export type { AttemptRecord, DeadLetter, RateLimit, Rules } from '@sluice/queue';

export type Overview = Pick<WholeOverview, 'atMs'> & Partial<WholeOverview>;
