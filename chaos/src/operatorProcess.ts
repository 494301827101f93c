// An operator who does not keep still: cancels jobs, pauses and resumes, sets limits and takes them back, replays dead letters, and
// keeps a schedule that ticks several times a second. What it asks for is written down before, what came of it after.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { consoleLogger } from '@sluice/base';
import { Queue } from '@sluice/queue';
import { Journal, JournalReader, files } from './evidence.js';
import type { OperatorLine, ProducerLine } from './evidence.js';
import { readPart } from './part.js';
import { Random } from '@sluice/testbed/random';
import type { Work } from './work.js';

const paceMs = 150;
const knownIds = 500;
const everyMs = 400;
const tidyTries = 50;
const scheduleName = 'tick';

const part = readPart();
const log = new Journal<OperatorLine>(join(part.folder, files.operator));
const random = new Random(`${part.seed} ${part.name} ${process.pid}`);
const { redis, partitions } = part;
const queue = new Queue<Work>(part.queue, { redis, partitions, logger: consoleLogger() });
const readers = new Map<string, JournalReader<ProducerLine>>();
const known: string[] = [];
let stopping = false;

process.once('SIGTERM', () => {
  stopping = true;
});

// One that was killed may have left the queue paused.
await insist(tidyUp);
if (!part.closing) await operate();
await insist(async () => {
  await queue.schedules.remove(scheduleName);
  log.write({ e: 'unscheduled', at: Date.now(), name: scheduleName, everyMs });
});
await insist(tidyUp);
await queue.close();
process.exit(0);

async function operate(): Promise<void> {
  await insist(schedule);
  while (!stopping) {
    await sleep(paceMs * (0.5 + random.next()));
    const act = random.pick([cancel, cancel, cancel, pause, limit, replay]);
    await act().catch(() => {});
  }
}

async function schedule(): Promise<void> {
  const work: Work = { key: '', kind: 'tick', ms: 0 };
  log.write({ e: 'scheduled', at: Date.now(), name: scheduleName, everyMs });
  await queue.schedules.set(scheduleName, { everyMs }, work, { missed: 'all' });
}

async function cancel(): Promise<void> {
  learnIds();
  if (known.length === 0) return;
  const id = random.pick(known);
  log.write({ e: 'cancelling', at: Date.now(), id });
  const was = await queue.cancel(id);
  log.write({ e: 'cancelled', at: Date.now(), id, was });
}

async function pause(): Promise<void> {
  await queue.pause();
  await sleep(random.between(50, 300));
  await queue.resume();
}

async function limit(): Promise<void> {
  const max = random.between(1, 3);
  await queue.limit(random.pick([{ perGroup: { maxActive: max } }, { maxActive: 4 * part.partitions }]));
  await sleep(random.between(50, 400));
  await queue.limit({ maxActive: null, perGroup: { maxActive: null } });
}

async function replay(): Promise<void> {
  const operation = `${part.name}-${process.pid}-${random.between(1, 1e9)}`;
  log.write({ e: 'replaying', at: Date.now(), operation });
  // Poison would kill three workers again each time, and what is malformed stays so.
  const kindOf = (data: unknown) => (data as Partial<Work> | undefined)?.kind;
  const where = ({ data }: { data: unknown }) => !['poison', undefined].includes(kindOf(data));
  const { letters } = await queue.dead.list({ limit: 5, where });
  if (letters.length > 0) await queue.dead.replay({ ids: letters.map(({ id }) => id) }, { operation });
  log.write({ e: 'replayed', at: Date.now(), operation });
}

async function tidyUp(): Promise<void> {
  await queue.limit({ paused: null, maxActive: null, perGroup: { maxActive: null } });
}

/** What must be done is tried until it is. */
async function insist(act: () => Promise<void>): Promise<void> {
  for (let tries = 0; tries < tidyTries; tries++) {
    try {
      return await act();
    } catch (error) {
      process.stderr.write(`${String(error)}\n`);
      await sleep(paceMs);
    }
  }
}

/** Reads the newest accepted ids from the producers' logs. */
function learnIds(): void {
  for (const name of readdirSync(part.folder).filter((file) => file.startsWith('accepted-'))) {
    let reader = readers.get(name);
    if (!reader) readers.set(name, (reader = new JournalReader(join(part.folder, name))));
    for (const line of reader.read()) if (line.e === 'accepted' && line.ours) known.push(line.id);
  }
  known.splice(0, known.length - knownIds);
}
