// Whose job is it? A job carries its tenant and its owner as labels. Keys of a tenant see and touch that tenant's jobs only; to them
// all others do not exist. Keys of the installation see everything, and only they can touch what has no tenant.
import type { Principal } from '@sluice/access';
import type { JobView, AnyQueue } from '@sluice/queue';
import { controlErrors } from './errors.js';

type Labels = Readonly<Record<string, string>>;

/** What a search is restricted to. */
export function ownLabels({ installation, tenant }: Principal): { labels?: Labels } {
  return installation ? {} : { labels: { tenant } };
}

export function isOwn({ installation, tenant }: Principal, labels: Labels): boolean {
  return installation || labels['tenant'] === tenant;
}

/** The job, if there is one that the asker may know of. */
export async function ownJob(principal: Principal, queue: AnyQueue, id: string): Promise<JobView> {
  const job = await queue.job(id);
  if (!job || !isOwn(principal, job.labels)) throw controlErrors.JOB_NOT_FOUND({ queue: queue.name, id });
  return job;
}
