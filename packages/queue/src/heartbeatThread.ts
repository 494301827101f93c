// The heartbeat thread: renews leases, and ends the process when its main loop hangs in a job that is out of time.
//
// Main can time out a job by itself as long as its loop turns. When the loop has stood still and the earliest job is past its
// deadline plus a grace, the thread reads from Redis what the session holds, fails the jobs that are out of time (which counts an
// attempt), gives the others back, and kills the process: a handler in a busy loop cannot be stopped in any other way.
import { parentPort, workerData } from 'node:worker_threads';
import { setTimeout as pause } from 'node:timers/promises';
import { isSluiceError } from '@sluice/base';
import { RedisLink } from '@sluice/redis';
import { retryDelayMs } from './backoff.js';
import type { Backoff } from './backoff.js';
import { buryDetail } from './dead.js';
import { queueErrors } from './errors.js';
import { failPoint } from './failPoint.js';
import { describeError } from './fingerprint.js';
import { sharedNowMs } from './heartbeat.js';
import type { FromThread, ToThread, Watched } from './heartbeat.js';
import { readHeld } from './held.js';
import { encodeAttempt } from './history.js';
import type { PartitionKeys } from './keys.js';
import { unpackJob } from './packed.js';
import { scripts } from './scripts.js';
import { pack } from './wire.js';
import type { WireValue } from './wire.js';

const beatsPerLease = 3;
const graceMs = 1_000;
const loopStandsStillMs = 1_000;
const checkEveryMs = 250;

const turned = new BigInt64Array(workerData as SharedArrayBuffer);
const links = new Map<string, RedisLink>();
const stops = new Map<number, AbortController>();

parentPort!.on('message', (message: ToThread) => {
  if ('watch' in message) {
    const stop = new AbortController();
    stops.set(message.watch.key, stop);
    void renew(message.watch, stop.signal);
    void guard(message.watch, stop.signal);
  } else {
    stops.get(message.forget)?.abort();
    stops.delete(message.forget);
  }
});
parentPort!.postMessage({ ready: true } satisfies FromThread);

async function renew(watched: Watched, stopped: AbortSignal): Promise<void> {
  const { session, leaseMs, key } = watched;
  const link = linkTo(watched);
  while (!stopped.aborted) {
    try {
      failPoint('beat.due');
      const reply = (await link.run(
        scripts.renew,
        keysOf(watched),
        { session, leaseMs },
        { deadlineMs: leaseMs },
      )) as Buffer[];
      failPoint('beat.replied');
      const status = reply[0]!.toString();
      if (status !== 'OK' && !stopped.aborted) {
        const message: FromThread = { lost: key, why: status };
        parentPort!.postMessage(message);
        return;
      }
    } catch (error) {
      // Redis is away. Nobody can renew then, and everybody gets a fresh lease when it is back.
      if (!isSluiceError(error) || !error.retryable) await pause(checkEveryMs);
    }
    await pause(leaseMs / beatsPerLease);
  }
}

async function guard(watched: Watched, stopped: AbortSignal): Promise<void> {
  const deadline = new BigInt64Array(watched.deadline);
  while (!stopped.aborted) {
    await pause(checkEveryMs);
    const nowMs = Number(sharedNowMs());
    const outOfTimeMs = Number(Atomics.load(deadline, 0));
    const loopTurnedMs = Number(Atomics.load(turned, 0));
    const hangs =
      outOfTimeMs > 0 && nowMs > outOfTimeMs + graceMs && nowMs > loopTurnedMs + loopStandsStillMs;
    try {
      if (hangs && (await failWhatIsOutOfTime(watched))) process.kill(process.pid, 'SIGKILL');
    } catch {
      // Redis is away; the lease runs out if it stays so, and this is looked at again if not.
    }
  }
}

/** True when there was such a job, so that the process has to go. */
async function failWhatIsOutOfTime(watched: Watched): Promise<boolean> {
  const link = linkTo(watched);
  const keys = keysOf(watched);
  const tokens = await readHeld(link, keys.active + watched.session);
  if (tokens.size === 0) return false;
  const time = (await link.call('time', [])) as Buffer[];
  const nowMs = Number(time[0]) * 1000 + Number(time[1]) / 1000;
  const settling: WireValue[] = [];
  const returning: WireValue[] = [];
  let outOfTime = 0;
  for (const [id, token] of tokens) {
    const packed = (await link.call('hget', [keys.jobs, id])) as Buffer | null;
    if (!packed) continue;
    const job = unpackJob(packed);
    const timeoutMs = job.options?.t ?? watched.timeoutMs;
    // The token is the time of the claim in µs.
    if (nowMs - Number(token) / 1000 < timeoutMs + graceMs) {
      returning.push([id, token, 'returned', '', '', '']);
      continue;
    }
    outOfTime++;
    const error = describeError(queueErrors.JOB_TIMEOUT({ timeoutMs }));
    const attempt = job.attempts + 1;
    const atMs = Math.round(nowMs);
    const record = encodeAttempt({ attempt, atMs, worker: watched.worker, kind: 'timeout', ...error });
    if (attempt >= (job.options?.a ?? watched.attempts)) {
      const { detail, print, title } = buryDetail(error, watched.worker, atMs, attempt);
      settling.push([id, token, 'dead', 0, '', record, detail, print, title]);
    } else {
      const delayMs = retryDelayMs(job.options?.b ?? (watched.backoff as Backoff), attempt, error);
      returning.push([id, token, 'failed', String(Math.round(delayMs)), '', record]);
    }
  }
  if (outOfTime === 0) return false;
  const { session } = watched;
  failPoint('hang.found');
  await link.run(scripts.settle, keys, { session, items: pack(settling) });
  failPoint('hang.settled');
  await link.run(scripts.retry, keys, { session, items: pack(returning) });
  failPoint('hang.returned');
  return true;
}

function linkTo(watched: Watched): RedisLink {
  const name = JSON.stringify(watched.target);
  let link = links.get(name);
  if (!link) {
    link = new RedisLink(watched.target, { name: 'sluice-heartbeat' });
    links.set(name, link);
  }
  return link;
}

function keysOf(watched: Watched): PartitionKeys {
  return watched.keys as PartitionKeys;
}
