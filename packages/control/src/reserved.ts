// Queues of Sluice's own: uploads, operations and deliveries of webhooks are jobs like all others, but their handlers trust what they are
// given, because only we write it. Whoever could write into them over HTTP would act for any tenant. So nobody adds jobs to them here and
// nobody changes the data of those that are in them, also not with a key of the installation: whoever needs that has Redis.
//
// What they contain can be seen like other jobs. Their dead letters are replayed and discarded as they are; a tenant's key reaches only
// those with its own label, as everywhere.
import { accessErrors, type Principal } from '@sluice/access';
import type { QueueSnapshot } from '@sluice/inspect';
import { controlErrors } from './errors.js';

/** Of uploads; it has its name from before there was a prefix. */
const uploadsQueue = 'uploads';
const ownPrefix = 'sluice.';

export function isReserved(queue: string): boolean {
  return queue === uploadsQueue || queue.startsWith(ownPrefix);
}

export interface QueueRow extends QueueSnapshot {
  /** One of Sluice's own. */
  reserved: boolean;
}

export function withOwner<Q extends QueueSnapshot>(queue: Q): Q & QueueRow {
  return { ...queue, reserved: isReserved(queue.name) };
}

/** Before a job is added, or gets other data. */
export function refuseReserved(queue: string): void {
  if (isReserved(queue)) throw controlErrors.QUEUE_RESERVED({ queue });
}

/** Before a job of ours is ended or hurried: each has a route of its own (uploads, operations) that also tidies up behind it. */
export function leaveToInstallation({ installation }: Principal, queue: string): void {
  if (isReserved(queue) && !installation)
    throw accessErrors.FORBIDDEN({
      reason: `queue "${queue}" is Sluice's own; cancel the upload or the operation instead`,
    });
}
