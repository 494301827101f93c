// The queues of a small document service, with handlers that behave like real ones: they take time, say how far they are, and fail of things that
// one has seen before.
import { setTimeout as sleep } from 'node:timers/promises';
import { createChain, GiveUp, Queue, type Job } from '@sluice/queue';
import { between, happens, often, oneOf } from './chance.js';

interface Kind {
  name: string;
  perSecond: number;
  concurrency: number;
  runMs: [least: number, most: number];
  /** Shares of the runs. */
  fails: number;
  givesUp: number;
  errors: readonly (() => Error)[];
  /** Why it is given up at once. */
  verdict: string;
  data: () => Record<string, unknown>;
}

const customers = ['acme', 'globex', 'initech', 'umbrella', 'hooli'];
const languages = ['en', 'de', 'fr', 'ja', 'pt'];
const number = (most: number): number => Math.floor(between(1, most));

function named(name: string, message: string): () => Error {
  return () => Object.assign(new Error(message.replace('#', String(number(90_000)))), { name });
}

const kinds: readonly Kind[] = [
  {
    name: 'document',
    ...{ perSecond: 6, concurrency: 8, runMs: [40, 400], fails: 0.06, givesUp: 0.004 },
    errors: [
      named('StorageTimeout', 'no answer from storage within 5000 ms (request #)'),
      named('PdfError', 'page # has no content stream'),
    ],
    verdict: 'the file is encrypted and nobody has its password',
    data: () => ({
      documentId: `doc-${number(90_000)}`,
      pages: number(60),
      language: oneOf(languages),
      customer: oneOf(customers),
    }),
  },
  {
    name: 'audio',
    ...{ perSecond: 1.5, concurrency: 4, runMs: [300, 1_500], fails: 0.08, givesUp: 0.01 },
    errors: [named('FfmpegError', 'moov atom not found in /media/#.m4a')],
    verdict: 'the recording is silent',
    data: () => ({
      recording: `call-${number(9_000)}`,
      seconds: number(1_800),
      codec: oneOf(['aac', 'opus', 'mp3']),
    }),
  },
  {
    name: 'video',
    ...{ perSecond: 0.4, concurrency: 2, runMs: [1_500, 6_000], fails: 0.1, givesUp: 0.03 },
    errors: [named('MemoryError', 'cannot allocate # MiB for a frame buffer')],
    verdict: 'the codec is not licensed',
    data: () => ({ clip: `clip-${number(900)}`, height: oneOf([720, 1_080, 2_160]) }),
  },
  {
    name: 'graph',
    ...{ perSecond: 0, concurrency: 3, runMs: [100, 700], fails: 0.07, givesUp: 0.01 },
    errors: [named('Neo4jError', 'the transaction # timed out')],
    verdict: 'the account is closed',
    data: () => ({}),
  },
  {
    name: 'thumbnails',
    ...{ perSecond: 12, concurrency: 6, runMs: [5, 60], fails: 0.01, givesUp: 0 },
    errors: [named('DecodeError', 'unexpected end of image #')],
    verdict: 'the image is too large',
    data: () => ({ image: `img-${number(90_000)}`, width: oneOf([128, 256, 512]) }),
  },
];

type Data = Record<string, unknown>;

export async function startWork(
  redis: string,
  signal: AbortSignal,
  onProblem: (error: unknown) => void,
): Promise<() => Promise<void>> {
  const queues = new Map(kinds.map((kind) => [kind.name, new Queue<Data>(kind.name, { redis })]));
  const archive = new Queue<Data>('archive', { redis });
  for (const kind of kinds) {
    const worker = queues.get(kind.name)!.work((job) => handle(kind, job), {
      concurrency: kind.concurrency,
      name: `demo ${kind.name}`,
    });
    await worker.start();
  }
  await addDoomed(queues);
  await archive.pause();
  await archive.addMany(Array.from({ length: 120 }, () => ({ data: { year: number(30) + 1_995 } })));
  await queues
    .get('document')!
    .schedules.set('nightly-report', { cron: '0 2 * * *', timeZone: 'Europe/Berlin' }, { report: 'daily' });
  await queues.get('thumbnails')!.schedules.set('sweep', { everyMs: 30_000 }, { sweep: true });
  const making = kinds
    .filter(({ perSecond }) => perSecond > 0)
    .map((kind) => often(kind.perSecond, signal, () => add(queues.get(kind.name)!, kind), onProblem));
  const chains = often(0.5, signal, () => addChain(queues), onProblem);
  return async () => {
    await Promise.all([...making, chains]);
    await Promise.all([...queues.values(), archive].map((queue) => queue.close(5_000)));
  };
}

/** Chance kills one job in a hundred; whoever looks for a minute should see one, of more than one cause. */
async function addDoomed(queues: ReadonlyMap<string, Queue<Data>>): Promise<void> {
  for (const kind of kinds.filter(({ givesUp }) => givesUp > 0)) {
    const queue = queues.get(kind.name)!;
    await queue.add({ ...kind.data(), hopeless: true });
    await queue.add(
      { ...kind.data(), damaged: true },
      { attempts: 2, backoff: { type: 'fixed', delayMs: 500 } },
    );
  }
}

function add(queue: Queue<Data>, kind: Kind): Promise<unknown> {
  // What is damaged fails at each attempt, and dies of it.
  return queue.add(
    { ...kind.data(), ...(happens(kind.givesUp) && { damaged: true }) },
    {
      attempts: 3,
      backoff: { type: 'exponential', delayMs: 15_000 },
      labels: { tenant: 'default', owner: oneOf(customers) },
      ...(happens(0.1) && { priority: 1 }),
      ...(happens(0.05) && { delayMs: Math.round(between(10_000, 120_000)) }),
      ...(happens(0.2) && { keepResultMs: 600_000 }),
    },
  );
}

/** A document is read, then drawn into the graph. */
function addChain(queues: ReadonlyMap<string, Queue<Data>>): Promise<unknown> {
  const document = kinds[0]!.data();
  return createChain([
    { key: 'read', queue: queues.get('document')!, data: document },
    { key: 'draw', queue: queues.get('graph')!, data: { of: document['documentId'] }, after: ['read'] },
  ]);
}

async function handle(kind: Kind, job: Job<Data>): Promise<object> {
  const ms = between(...kind.runMs);
  const isLong = ms > 500;
  if (isLong) await job.log(`began attempt ${job.attempt}`);
  for (let part = 1; part <= 4; part++) {
    await sleep(ms / 4, undefined, { signal: job.signal });
    if (isLong) await job.progress(part * 25);
    if (part === 2 && (job.data['hopeless'] === true || happens(kind.givesUp)))
      throw new GiveUp(kind.verdict);
    if (part === 2 && (job.data['damaged'] === true || happens(kind.fails))) {
      await job.log('giving up this attempt');
      throw oneOf(kind.errors)();
    }
  }
  return { tookMs: Math.round(ms) };
}
