// Starts workers in processes of their own, for tests of what happens when one dies or stalls.
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import type { TestContext } from 'node:test';
import { Gathering } from './setup.js';
import type { Bed } from './setup.js';

export const leaseMs = 1_000;

/** A worker in a process of its own; `heard` gets what its handler says. */
export async function startWorker(t: TestContext, bed: Bed, queue: string, mode: string, more: object = {}) {
  const child: ChildProcess = fork(new URL('./workerProcess.js', import.meta.url), [
    JSON.stringify({ redis: bed.redis.url, queue, mode, leaseMs, ...more }),
  ]);
  const heard = new Gathering<{
    id: string;
    attempt: number;
    crashes: number;
    token: string;
    running: number;
  }>();
  child.on('message', (message) => heard.push(message as never));
  t.after(() => child.kill('SIGKILL'));
  await new Promise((resolve) => child.once('message', resolve));
  heard.items.length = 0;
  return { child, heard };
}
