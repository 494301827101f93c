// What the page can make the server do with queues and jobs, each with a sentence on what happened.
import { at, call } from './api.js';
import type { Operation, Rules } from './shapes.js';

export async function pauseQueue(queue: string): Promise<string> {
  await call('POST', `${at('v1', 'queues', queue)}/pause`);
  return `${queue} starts no more jobs; those that run go on.`;
}

export async function resumeQueue(queue: string): Promise<string> {
  await call('POST', `${at('v1', 'queues', queue)}/resume`);
  return `${queue} starts jobs again.`;
}

export async function setLimits(queue: string, rules: Rules): Promise<string> {
  await call('PATCH', `${at('v1', 'queues', queue)}/limits`, { body: rules });
  return `The limits of ${queue} are set.`;
}

export async function retryJob(queue: string, id: string): Promise<string> {
  const { was } = await call<{ was: string }>('POST', `${at('v1', 'queues', queue, 'jobs', id)}/retry`);
  return `${id} runs now; it was ${was}.`;
}

export async function cancelJob(queue: string, id: string): Promise<string> {
  const { was } = await call<{ was: string }>('POST', `${at('v1', 'queues', queue, 'jobs', id)}/cancel`);
  return `${id} is cancelled; it was ${was}.`;
}

/** Resolves with the id of the job that runs: its own, or that of a copy. */
export async function replayJob(queue: string, id: string, data?: { data: unknown }): Promise<string> {
  const answer = await call<{ id: string }>('POST', `${at('v1', 'queues', queue, 'jobs', id)}/replay`, {
    body: data ?? {},
  });
  return answer.id;
}

export type Choice =
  'all' | { ids: string[] } | { fingerprint?: string; text?: string; from?: number; to?: number };

export interface DryRun {
  total: number;
  sample: { id: string; title: string; lastFailureMs: number }[];
}

export function previewDead(queue: string, word: 'replay' | 'discard', choice: Choice): Promise<DryRun> {
  return call<DryRun>('POST', `${at('v1', 'queues', queue, 'dead')}/${word}`, {
    body: { choice, dryRun: true },
  });
}

export async function moveDead(
  queue: string,
  word: 'replay' | 'discard',
  choice: Choice,
  perSecond?: number,
): Promise<Operation> {
  return call<Operation>('POST', `${at('v1', 'queues', queue, 'dead')}/${word}`, {
    body: { choice, ...(perSecond !== undefined && { perSecond }) },
  });
}

export async function cancelOperation(id: string): Promise<string> {
  await call('POST', `${at('v1', 'operations', id)}/cancel`);
  return 'It stops; what was done stays done.';
}

export async function resumeOperation(id: string): Promise<string> {
  await call('POST', `${at('v1', 'operations', id)}/resume`);
  return 'It goes on where it stopped.';
}

export async function drainWorker(queue: string, session: string, drain: boolean): Promise<string> {
  await call('POST', `${at('v1', 'queues', queue, 'workers', session)}/drain`, { body: { drain } });
  return drain ? 'It finishes what it has and takes nothing more.' : 'It takes jobs again.';
}
