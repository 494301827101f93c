// One id through the whole flow: upload → record → event → job → result. Whatever the id is of, the others are found from it.
//
//   upload id    the record of the upload names its node
//   node id      the key of its object names the upload that brought it
//   event id     begins with the id of its node, or of its upload; that of a verification names only its result, and is looked up
//                among the newest events
//   job id       it contains the id of a node or an upload, or its labels or its payload name one
//
// A job that is done keeps neither labels nor payload: whoever makes the id of a job from that of its event, as is wise anyway, finds
// it here too. It is shown to whoever may see the file or the upload in its id.
//
// Whoever has a key of the installation asks for ids of all tenants. Records are asked for by tenant, so whose it is comes first: the tenant
// that the request names, or that of an event, of an open upload or of a job. Of a file that is older than all of them, X-Sluice-Tenant
// must say it.
//
// Events and jobs have no index by node. The newest events and the jobs of each queue are looked through, a bounded number of them,
// and the answer says how many, and whether that was all.
import type { AnyQueue, JobGlance, JobState } from '@sluice/queue';
import { isSluiceError } from '@sluice/base';
import { readNewest, type StreamEvent } from '@sluice/events';
import type { NodeRecord, UploadRecord } from '@sluice/records';
import { isUploadId, type UploadView } from '@sluice/upload';
import { eventView, isFor, type EventView } from './eventRoutes.js';
import { isOwn } from './owner.js';
import type { Principal } from '@sluice/access';
import type { ControlParts } from './parts.js';

const maxEvents = 10_000;
const maxOpenUploads = 500;
const eventsPerRead = 1_000;
const maxJobsPerQueue = 5_000;
const maxJobs = 100;
const maxQueues = 100;
const uuid = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/i;
const uploadInside = /\b[0-9a-z]{1,3}-[0-9a-f]{32}\b/;

export interface Trace {
  id: string;
  kind: 'upload' | 'node' | 'event' | 'job';
  upload: { record: UploadRecord | null; live: UploadView | null } | null;
  node: NodeRecord | null;
  events: (EventView & { published: true })[];
  /** Of this node, not published yet. */
  waitingEvents: number;
  jobs: TracedJob[];
  bounds: { events: { scanned: number; complete: boolean }; jobs: { scanned: number; complete: boolean } };
}

export interface TracedJob {
  queue: string;
  id: string;
  state: JobState;
  createdMs?: number;
  attempt?: number;
  progress?: unknown;
  result?: unknown;
  error?: string;
}

interface Known {
  nodeId?: string;
  uploadId?: string;
}

export async function traceOf(
  parts: ControlParts,
  principal: Principal,
  id: string,
): Promise<Trace | undefined> {
  const start = await whatIs(parts, principal, id);
  if (!start) return undefined;
  const known: Known = { ...start.known };
  const tenant = await tenantOf(parts, principal, start);
  let record =
    known.uploadId === undefined ? undefined : await parts.records.uploads.get(tenant, known.uploadId);
  known.nodeId ??= record?.nodeId;
  const node = known.nodeId === undefined ? undefined : await parts.records.nodes.get(tenant, known.nodeId);
  known.uploadId ??= uploadOf(node);
  if (known.uploadId !== undefined) record ??= await parts.records.uploads.get(tenant, known.uploadId);
  const [live, published, waitingEvents, found] = await Promise.all([
    liveUpload(parts, tenant, known.uploadId),
    eventsOf(parts, tenant, known.nodeId),
    known.nodeId === undefined ? 0 : parts.records.outbox.waitingFor(known.nodeId),
    jobsOf(parts, principal, known, start.jobs, record !== undefined || node !== undefined),
  ]);
  const isKnown = record || node || live || published.events.length > 0;
  const isJob = start.kind === 'job' && found.jobs.some((job) => job.id === id);
  if (!isKnown && !isJob) return undefined;
  return {
    id,
    kind: start.kind,
    upload: record || live ? { record: record ?? null, live: live ?? null } : null,
    node: node ?? null,
    events: published.events,
    // A job may name what is not the asker's.
    waitingEvents: isKnown ? waitingEvents : 0,
    jobs: found.jobs,
    bounds: { events: published.bounds, jobs: found.bounds },
  };
}

interface Start {
  kind: Trace['kind'];
  known: Known;
  /** Whose it is, if what was found says so. */
  tenant?: string;
  jobs: { queue: AnyQueue; id: string }[];
}

async function whatIs(parts: ControlParts, principal: Principal, id: string): Promise<Start | undefined> {
  const { inspect } = parts;
  if (isUploadId(id)) return { kind: 'upload', known: { uploadId: id }, jobs: [] };
  const nodeId = uuid.exec(id)?.[0];
  if (nodeId === id) return { kind: 'node', known: { nodeId: id.toLowerCase() }, jobs: [] };
  if (nodeId !== undefined && id.startsWith(nodeId))
    return { kind: 'event', known: { nodeId: nodeId.toLowerCase() }, jobs: [] };
  const uploadId = uploadInside.exec(id)?.[0];
  if (uploadId !== undefined && id.startsWith(uploadId))
    return { kind: 'event', known: { uploadId }, jobs: [] };
  const rows = (await inspect.jobsById(id)).filter((row) => isOwn(principal, row.labels) || hasEnded(row));
  if (rows.length === 0) return eventNamed(parts, principal, id);
  const jobs = await Promise.all(rows.map(async ({ queue }) => ({ queue: await inspect.open(queue), id })));
  const known: Known = {};
  for (const { queue } of jobs) {
    const job = await queue.job(id);
    if (job) Object.assign(known, refersTo(job));
  }
  const tenant = rows.find(({ labels }) => labels['tenant'] !== undefined)?.labels['tenant'];
  return { kind: 'job', known, jobs, ...(tenant !== undefined && { tenant }) };
}

/** An event whose id says nothing of its node. */
async function eventNamed(parts: ControlParts, principal: Principal, id: string): Promise<Start | undefined> {
  const event = await findEvent(parts, ({ eventId }) => eventId === id);
  const view = event && eventView(event);
  if (!view || !isFor(principal, view) || !uuid.test(view.key)) return undefined;
  const { tenant } = view.data;
  const known = { nodeId: view.key.toLowerCase() };
  return { kind: 'event', known, jobs: [], ...(typeof tenant === 'string' && { tenant }) };
}

async function tenantOf(
  parts: ControlParts,
  principal: Principal,
  { known: { nodeId, uploadId }, tenant }: Start,
): Promise<string> {
  const { records } = parts;
  const asked = principal.tenant;
  if (!principal.installation) return asked;
  if (tenant !== undefined) return tenant;
  if (nodeId === undefined && uploadId === undefined) return asked;
  const isThere =
    (uploadId !== undefined && (await records.uploads.get(asked, uploadId))) ||
    (nodeId !== undefined && (await records.nodes.get(asked, nodeId)));
  if (isThere) return asked;
  const open = await records.uploads.pageOfOpen({ limit: maxOpenUploads });
  const upload = open.find((one) => one.id === uploadId || one.nodeId === nodeId);
  if (upload) return upload.tenant;
  const event = await findEvent(parts, ({ key, eventId, value }) => {
    if (nodeId !== undefined) return key === nodeId;
    return eventId.startsWith(uploadId!) || value.includes(uploadId!);
  });
  const found = event && eventView(event).data['tenant'];
  return typeof found === 'string' ? found : asked;
}

/** The newest one of which this holds, among those that are looked through. */
async function findEvent(
  { events }: ControlParts,
  isWanted: (event: StreamEvent) => boolean,
): Promise<StreamEvent | undefined> {
  let before: string | undefined;
  for (let scanned = 0; scanned < maxEvents;) {
    const place = before === undefined ? {} : { before };
    const batch = await readNewest({ redis: events, limit: eventsPerRead, ...place });
    const found = batch.find(isWanted);
    if (found || batch.length < eventsPerRead) return found;
    scanned += batch.length;
    before = batch.at(-1)!.cursor;
  }
  return undefined;
}

/** What a job is about, if it says so: in its labels, at the top of its payload, or in its id. */
function refersTo({ id, labels, data }: Pick<JobGlance, 'id' | 'labels' | 'data'>): Known {
  const of = (...names: string[]): string | undefined => {
    for (const name of names) {
      const value =
        labels[name] ??
        (typeof data === 'object' && data !== null && Object.hasOwn(data, name)
          ? (data as Record<string, unknown>)[name]
          : undefined);
      if (typeof value === 'string') return value;
    }
    return undefined;
  };
  const nodeId = uuid.exec(of('nodeId', 'node') ?? id)?.[0];
  const uploadId = of('uploadId', 'upload') ?? uploadInside.exec(id)?.[0];
  return {
    ...(nodeId !== undefined && { nodeId: nodeId.toLowerCase() }),
    ...(uploadId !== undefined && isUploadId(uploadId) && { uploadId }),
  };
}

/** Object keys contain the id of the upload that brought them. */
function uploadOf(node: NodeRecord | undefined): string | undefined {
  return node?.objectKey?.split('/').find((name) => isUploadId(name));
}

async function liveUpload(
  { uploads }: ControlParts,
  tenant: string,
  id: string | undefined,
): Promise<UploadView | undefined> {
  if (id === undefined) return undefined;
  try {
    await uploads.owned(id, tenant);
    return await uploads.status(id);
  } catch (error) {
    if (isSluiceError(error, 'UPLOAD_NOT_FOUND')) return undefined;
    throw error;
  }
}

async function eventsOf({ events }: ControlParts, tenant: string, nodeId: string | undefined) {
  const found: Trace['events'] = [];
  let scanned = 0;
  let complete = nodeId === undefined;
  let before: string | undefined;
  while (!complete && scanned < maxEvents) {
    const batch = await readNewest({
      redis: events,
      limit: eventsPerRead,
      ...(before !== undefined && { before }),
    });
    scanned += batch.length;
    before = batch.at(-1)?.cursor;
    complete = batch.length < eventsPerRead;
    for (const event of batch) {
      if (event.key !== nodeId) continue;
      const view = eventView(event);
      if (view.data['tenant'] === tenant) found.push({ ...view, published: true });
    }
  }
  return { events: found.toReversed(), bounds: { scanned, complete } };
}

async function jobsOf(
  parts: ControlParts,
  principal: Principal,
  known: Known,
  given: Start['jobs'],
  ownsIt: boolean,
) {
  const jobs: TracedJob[] = [];
  const seen = new Set<string>();
  let scanned = 0;
  let complete = true;
  const take = async (queue: AnyQueue, id: string): Promise<void> => {
    const name = `${queue.name}/${id}`;
    if (seen.has(name)) return;
    seen.add(name);
    const job = await queue.job(id);
    if (!job) return;
    const mayKnow =
      isOwn(principal, job.labels) || (ownsIt && hasEnded(job) && isAbout(refersTo(job), known));
    if (mayKnow) jobs.push(tracedJob(queue.name, job));
  };
  for (const { queue, id } of given) await take(queue, id);
  if (known.nodeId !== undefined || known.uploadId !== undefined) {
    const queues = await parts.inspect.openAll();
    if (queues.length > maxQueues) complete = false;
    for (const queue of queues.slice(0, maxQueues)) {
      const page = await queue.browse({
        limit: maxJobs,
        maxScanned: maxJobsPerQueue,
        where: (job) => isAbout(refersTo(job), known),
      });
      scanned += page.scanned;
      complete &&= page.complete;
      for (const { id } of page.items) if (jobs.length < maxJobs) await take(queue, id);
    }
  }
  return { jobs, bounds: { scanned, complete } };
}

function hasEnded({ state }: { state: JobState }): boolean {
  return state === 'done' || state === 'cancelled';
}

function isAbout(job: Known, known: Known): boolean {
  return (
    (job.nodeId !== undefined && job.nodeId === known.nodeId) ||
    (job.uploadId !== undefined && job.uploadId === known.uploadId)
  );
}

function tracedJob(queue: string, job: NonNullable<Awaited<ReturnType<AnyQueue['job']>>>): TracedJob {
  const { id, state, createdMs, attempt, progress, result, error } = job;
  return {
    ...{ queue, id, state },
    ...(createdMs !== undefined && { createdMs }),
    ...(attempt !== undefined && { attempt }),
    ...(progress !== undefined && { progress }),
    ...(result !== undefined && { result }),
    ...(error && { error: `${error.name}: ${error.message}` }),
  };
}
