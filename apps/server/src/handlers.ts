/**
 * What the server does with jobs: the handlers of a module that the user names, one per queue:
 *
 *     export const handlers = { mail: async (job) => { … }, images: async (job) => { … } };
 *
 * Without a module every job is logged and counts as done, so that `npm start` shows something before there is any
 * code. The module may have handlers for more queues than this server works on: several servers can share it.
 */
import { pathToFileURL } from 'node:url';
import type { Logger } from '@sluice/base';
import type { Handler } from '@sluice/queue';
import type { QueueConfig } from './config.js';
import { serverErrors } from './errors.js';

/** The demonstration shows the beginning of a payload; a log is no place for all of it. */
const SHOWN_CHARACTERS = 200;

export interface QueueWork extends QueueConfig {
  handler: Handler<unknown, unknown>;
}

/** The queues to work on, each with its handler. */
export async function chooseWork(
  queues: QueueConfig[] | undefined,
  file: string | undefined,
  logger: Logger,
): Promise<QueueWork[]> {
  if (file === undefined) {
    const handler = demonstration(logger);
    return (queues ?? [{ name: 'default' }]).map((queue) => ({ ...queue, handler }));
  }
  const handlers = await load(file);
  return (queues ?? [...handlers.keys()].map((name) => ({ name }))).map((queue) => {
    const handler = handlers.get(queue.name);
    if (handler) return { ...queue, handler };
    const known = [...handlers.keys()].join(', ');
    throw refuse(file, `its handlers are for ${known}, and there is none for the queue "${queue.name}"`);
  });
}

async function load(file: string): Promise<Map<string, Handler<unknown, unknown>>> {
  let module: { handlers?: unknown };
  try {
    module = (await import(pathToFileURL(file).href)) as typeof module;
  } catch (error) {
    throw refuse(file, `it cannot be loaded: ${inOneLine(error)}`, error);
  }
  const { handlers } = module;
  if (typeof handlers !== 'object' || handlers === null) {
    throw refuse(file, 'it does not export "handlers", an object with a function for each queue');
  }
  const entries = Object.entries(handlers) as [string, Handler<unknown, unknown>][];
  if (entries.length === 0) throw refuse(file, 'its handlers are empty');
  const odd = entries.find(([, handler]) => typeof handler !== 'function');
  if (odd) throw refuse(file, `the handler for the queue "${odd[0]}" is no function`);
  return new Map(entries);
}

function demonstration(logger: Logger): Handler<unknown, unknown> {
  return (job) => {
    const data = JSON.stringify(job.data).slice(0, SHOWN_CHARACTERS);
    logger.info({ queue: job.queue, job: job.id, data }, 'a job was done by the demonstration');
  };
}

function refuse(file: string, reason: string, cause?: unknown): Error {
  return serverErrors.BAD_HANDLERS({ file, reason }, { cause });
}

/** The message and the place it came from. */
function inOneLine(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const place = /\bat .*?(\/[^\s():]+:\d+)/.exec(error.stack ?? '')?.[1];
  return error.message.split('\n')[0]! + (place ? ` (${place})` : '');
}
