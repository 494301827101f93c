/**
 * One of everything that a tenant can have: files, uploads, jobs in every state, dead letters, operations, webhooks, keys and what is told
 * of them. Every name in it, every text and every byte has the mark of its tenant, so that whatever gets out can be recognised.
 *
 * `places` and `named` say where requests can name these things; a route with an address or a field that is not in them fails
 * the test that walks all routes.
 */
import { randomBytes } from 'node:crypto';
import { GiveUp, type Job, type Queue } from '@sluice/queue';
import { waitUntil } from '@sluice/testbed';
import type { Fillings, Loose } from './describedRoutes.js';

const PATIENCE = { timeoutMs: 60_000, everyMs: 50 };
/** A path, a key of idempotency and an id of a client that every tenant uses: namesakes, which must not meet. */
const PATH = 'reports/yearly.txt';
const SAME = 'the-same-for-everybody';
const HOUR_MS = 3_600_000;
const NEVER = { cron: '0 0 1 1 *' };

export type Ask = (method: string, path: string, body?: unknown, headers?: object) => Promise<Loose>;

export interface Things extends Fillings {
  tenant: string;
  /** What everything of this tenant contains. */
  mark: string;
}

export interface Furnishing {
  tenant: string;
  /** As an admin of the tenant. */
  ask: Ask;
  /** As an admin of the installation. */
  askRoot: Ask;
  service: (body: object) => Promise<unknown>;
  mail: Queue<Letter>;
}

export interface Letter {
  to: string;
  does: 'dies' | 'waits' | 'runs' | 'ends' | 'comes later';
}

/** One that runs does so until the end. */
export function handle({ data: { to, does }, signal }: Job<Letter>): Promise<string> | string {
  if (does === 'dies') throw new GiveUp(`it died on the way to ${to}`);
  if (does === 'waits') throw new Error(`not now: ${to}`);
  if (does === 'runs') return new Promise((resolve) => signal.addEventListener('abort', () => resolve('')));
  return `a result for ${to}`;
}

export async function furnish(furnishing: Furnishing): Promise<Things> {
  const { tenant, ask, askRoot } = furnishing;
  const mark = `${tenant}${randomBytes(6).toString('hex')}`;
  const drive = `${mark}-drive`;
  await ask('PUT', `/v1/drives/${drive}`);
  const folder = (await ask('POST', '/v1/nodes', { drive: 'main', path: `${mark}-folder` })).id as string;
  const file = await putFile(ask, 'main', PATH, mark);
  const other = await putFile(ask, drive, `${mark}.txt`, mark);
  const decision = `${mark} looks well`;
  await furnishing.service({ documentId: file.nodeId, verificationResult: 'approved', decision });
  const upload = await beginUpload(ask, mark, 'open');
  await ask('PUT', `/v1/uploads/${upload}/chunks/0`, mark.slice(0, 5));
  const ended = await beginUpload(ask, mark, 'ended');
  await ask('DELETE', `/v1/uploads/${ended}`);
  const link = await ask('POST', '/v1/links', { nodeId: file.nodeId });
  const jobs = await addJobs(furnishing, mark);
  const operation = await discardOne(ask, `${mark}-discarded`);
  const spare = (await ask('POST', '/v1/keys', { name: `${mark}-spare`, role: 'viewer' })).id as string;
  const hook = { url: `https://${mark}.invalid/hook`, topics: ['repository.nothing.*'] };
  const webhook = (await ask('POST', '/v1/webhooks', hook)).id as string;
  const { delivery } = (await ask('POST', `/v1/webhooks/${webhook}/test`)) as { delivery: string };
  const schedule = `${mark}-schedule`;
  await askRoot('PUT', `/v1/queues/mail/schedules/${schedule}`, { when: NEVER, data: mark });
  const { items: workers } = await askRoot('GET', '/v1/workers?queue=mail');
  const [event] = await toldOf(furnishing, [file.nodeId, other.nodeId, ended]);
  const { fingerprint } = (await ask('GET', `/v1/queues/mail/dead/${jobs.dead}`)) as { fingerprint: string };
  const { items: keys } = await ask('GET', '/v1/keys');
  const owned = JSON.stringify({ tenant, id: file.nodeId });
  return {
    ...{ tenant, mark },
    places: {
      '/v1/uploads/{id}': [[upload], [ended]],
      '/v1/uploads/{id}/chunks/{number}': [[upload, '1']],
      '/v1/files/{drive}/{path}': [
        ['main', PATH],
        [drive, `${mark}.txt`],
      ],
      '/v1/nodes/{id}': [[file.nodeId], [folder]],
      '/v1/drives/{name}': [['main'], [drive]],
      '/v1/keys/{id}': [[spare]],
      '/v1/queues/{queue}': [['mail'], ['sluice.webhooks']],
      '/v1/queues/{queue}/jobs/{id}': [
        ...Object.values(jobs).map((id) => ['mail', id]),
        ['sluice.webhooks', delivery],
        ['sluice.operations', operation],
      ],
      '/v1/queues/{queue}/dead/{id}': [['mail', jobs.dead]],
      '/v1/queues/{queue}/workers/{session}': [['mail', workers[0].session as string]],
      '/v1/queues/{queue}/schedules/{name}': [['mail', schedule]],
      '/v1/jobs/{id}': [...Object.values(jobs).map((id) => [id]), [delivery]],
      '/v1/operations/{id}': [[operation]],
      '/v1/cache/{family}': [['node']],
      '/v1/trace/{id}': [
        [file.nodeId],
        [upload],
        [ended],
        [event!.eventId as string],
        [jobs.dead],
        [jobs.done],
      ],
      '/v1/webhooks/{id}': [[webhook]],
    },
    named: {
      drive: ['main', drive],
      path: [PATH, `${mark}.txt`],
      pathPrefix: [`${mark}-folder`],
      parent: [folder],
      parentId: [folder],
      nodeId: [file.nodeId],
      documentId: [file.nodeId],
      resultId: [`${mark}-result`],
      name: [`${mark}-name`],
      id: [jobs.dead, jobs.waits],
      field: [{ field: 'does', equals: 'dies' }],
      error: ['it died'],
      text: ['it died'],
      fingerprint: [fingerprint],
      queue: ['mail', 'sluice.webhooks', 'uploads'],
      group: [`${mark}-group`],
      unique: [`${mark}-unique`],
      choice: ['all', { ids: [jobs.dead] }, { text: 'it died' }, { fingerprint }],
      tenant: [tenant, '*'],
      owner: [`${mark}-owner`],
      userId: [`${mark}-user`],
      actor: keys.map((each: Loose) => each.id as string),
      action: ['drive.create'],
      topic: ['repository.'],
      topics: ['events', 'uploads', 'events,uploads', 'overview'],
      key: [owned],
      clientNodeId: [`${SAME}-open`],
      after: ['0', '0-1', mark.slice(0, 3), event!.cursor],
      cursor: [event!.cursor, '0'],
      signature: [forged(link.url as string)],
      'Idempotency-Key': [`${SAME}-main`, `${SAME}-open`],
      'Last-Event-ID': ['0-1'],
      'If-Match': [`"${file.etag}"`],
      'If-Range': [`"${file.etag}"`],
    },
  };
}

/** A link with a signature that somebody made up. */
function forged(url: string): Record<string, string> {
  const query = Object.fromEntries(new URL(url, 'http://localhost').searchParams);
  return { ...query, signature: randomBytes(32).toString('base64url') };
}

async function putFile(ask: Ask, drive: string, path: string, mark: string): Promise<Loose> {
  const headers = { 'X-Sluice-Meta-Note': mark, 'Idempotency-Key': `${SAME}-${drive}` };
  return ask('PUT', `/v1/files/${drive}/${path}`, `bytes of ${mark}`, headers);
}

async function beginUpload(ask: Ask, mark: string, name: string): Promise<string> {
  const body = {
    drive: 'main',
    path: `${mark}-${name}.bin`,
    size: 10,
    chunkSize: 5,
    clientNodeId: `${SAME}-${name}`,
  };
  const headers = { 'Idempotency-Key': `${SAME}-${name}` };
  return (await ask('POST', '/v1/uploads', { ...body, metadata: { note: mark } }, headers)).id as string;
}

/** One in each state that a job can be in, and one more that has died. */
async function addJobs({ tenant, mail, ask }: Furnishing, mark: string) {
  const add = async (does: Letter['does'], name: string): Promise<string> => {
    const { id } = await mail.add(
      { to: mark, does },
      {
        id: `${mark}-${name}`,
        labels: { tenant, owner: `${mark}-owner` },
        ...{ attempts: 5, backoff: { type: 'fixed', delayMs: HOUR_MS } },
        ...{ rememberMs: HOUR_MS, keepResultMs: HOUR_MS },
        ...(does === 'comes later' && { delayMs: HOUR_MS }),
      },
    );
    return id;
  };
  const jobs = {
    dead: await add('dies', 'dead'),
    waits: await add('waits', 'waits'),
    runs: await add('runs', 'runs'),
    done: await add('ends', 'done'),
    later: await add('comes later', 'later'),
  };
  const discarded = await add('dies', 'discarded');
  const stateOf = async (id: string): Promise<Loose> => ask('GET', `/v1/queues/mail/jobs/${id}`);
  const areSettled = async (): Promise<boolean> => {
    const states = [jobs.dead, discarded, jobs.runs, jobs.done].map(async (id) => (await stateOf(id)).state);
    const { attempt, state } = await stateOf(jobs.waits);
    return (
      String(await Promise.all(states)) === 'dead,dead,active,done' && state === 'delayed' && attempt >= 1
    );
  };
  await waitUntil('the jobs are as they should be', areSettled, PATIENCE);
  return jobs;
}

async function discardOne(ask: Ask, id: string): Promise<string> {
  const started = await ask('POST', '/v1/queues/mail/dead/discard', { choice: { ids: [id] } });
  const isDone = async () => (await ask('GET', `/v1/operations/${started.id}`)).state === 'done';
  await waitUntil('the operation is done', isDone, PATIENCE);
  return started.id as string;
}

/** Events of all of them, once everything is published: an upload that ended has one more than that of its beginning. */
async function toldOf({ ask, askRoot }: Furnishing, ids: string[]): Promise<Loose[]> {
  let items: Loose[] = [];
  const areTold = async (): Promise<boolean> => {
    if ((await askRoot('GET', '/v1/events/outbox')).waiting > 0) return false;
    ({ items } = await ask('GET', '/v1/events?limit=500'));
    return ids.every((id) => items.some((event) => JSON.stringify(event).includes(id)));
  };
  await waitUntil('the events are published', areTold, PATIENCE);
  return items;
}
