// The heartbeat thread: renews leases, and ends the process when its main loop hangs in a job that is out of time.
//
// Main can time out a job by itself as long as its loop turns. When the loop has stood still and the earliest job is past its
// deadline plus a grace, the thread reads from Redis what the session holds, fails the jobs that are out of time (which counts an
// attempt), gives the others back, and kills the process: a handler in a busy loop cannot be stopped in any other way. When
// the loop stands still in the call of a handler, what was claimed together with its job has had no time of its own: it goes back.
import { parentPort, workerData } from 'node:worker_threads';
import { setTimeout as pause } from 'node:timers/promises';
import { failPoint, isSluiceError } from '@sluice/base';
import { RedisLink } from '@sluice/redis';
import { retryDelayMs } from './backoff.js';
import type { Backoff } from './backoff.js';
import { buryDetail } from './dead.js';
import { queueErrors } from './errors.js';
import { describeError } from './fingerprint.js';
import { sharedNowMs } from './heartbeat.js';
import type { FromThread, Pulse, ToThread, Watched } from './heartbeat.js';
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

const pulse = workerData as Pulse;
const turned = new BigInt64Array(pulse.turned);
const inside = new Uint8Array(pulse.inside);
const links = new Map<string, RedisLink>();
const sessions = new Map<number, { watched: Watched; deadline: BigInt64Array; stop: AbortController }>();

parentPort!.on('message', (message: ToThread) => {
  if ('watch' in message) {
    const { watch: watched } = message;
    const stop = new AbortController();
    sessions.set(watched.key, { watched, deadline: new BigInt64Array(watched.deadline), stop });
    void renew(watched, stop.signal);
  } else {
    sessions.get(message.forget)?.stop.abort();
    sessions.delete(message.forget);
  }
});
parentPort!.postMessage({ ready: true } satisfies FromThread);
void guard();

async function renew(watched: Watched, stopped: AbortSignal): Promise<void> {
  const { session, leaseMs, key } = watched;
  const link = linkTo(watched);
  const isDrained = new Int32Array(watched.drained);
  let wished = false;
  while (!stopped.aborted) {
    try {
      failPoint('beat.due');
      const reply = (await link.run(
        scripts.renew,
        keysOf(watched),
        { session, leaseMs, drained: Atomics.load(isDrained, 0) },
        { deadlineMs: leaseMs },
      )) as [Buffer, number, number];
      failPoint('beat.replied');
      const status = reply[0].toString();
      if (status !== 'OK' && !stopped.aborted) {
        const message: FromThread = { lost: key, why: status };
        parentPort!.postMessage(message);
        return;
      }
      if (wished !== (reply[2] === 1)) {
        wished = !wished;
        parentPort!.postMessage({ wished: key, drain: wished } satisfies FromThread);
      }
    } catch (error) {
      // Redis is away. Nobody can renew then, and everybody gets a fresh lease when it is back.
      if (!isSluiceError(error) || !error.retryable) await pause(checkEveryMs);
    }
    await pause(leaseMs / beatsPerLease);
  }
}

/** Looks after all sessions of the process. */
async function guard(): Promise<void> {
  for (let timesSeen = 0; ;) {
    await pause(checkEveryMs);
    const nowMs = Number(sharedNowMs());
    const standsStill = nowMs > Number(Atomics.load(turned, 0)) + loopStandsStillMs;
    // After a stop of the whole process this thread may be the first to run: the loop gets its chance.
    timesSeen = standsStill ? timesSeen + 1 : 0;
    if (timesSeen < 2) continue;
    for (const { watched, deadline } of [...sessions.values()]) {
      const outOfTimeMs = Number(Atomics.load(deadline, 0));
      const hangs = outOfTimeMs > 0 && nowMs > outOfTimeMs + graceMs;
      try {
        if (hangs && (await failWhatIsOutOfTime(watched))) process.kill(process.pid, 'SIGKILL');
      } catch {
        // Redis is away; the lease runs out if it stays so, and this is looked at again if not.
      }
    }
  }
}

/** True when there was such a job, or all were taken from us while the loop stood still: then the process has to go. */
async function failWhatIsOutOfTime(watched: Watched): Promise<boolean> {
  const link = linkTo(watched);
  const keys = keysOf(watched);
  const held = await readHeld(link, keys, watched.session);
  if (held.size === 0) return true;
  const time = (await link.call('time', [])) as Buffer[];
  const nowMs = Number(time[0]) * 1000 + Number(time[1]) / 1000;
  const settling: WireValue[] = [];
  const returning: WireValue[] = [];
  const culprit = [...held.keys()].find(isInside);
  let outOfTime = 0;
  for (const [id, { token, isBaled }] of held) {
    const packed = isBaled ? null : ((await link.call('hget', [keys.jobs, id])) as Buffer | null);
    if (!packed && !isBaled) continue;
    const job = packed ? unpackJob(packed) : { attempts: 0, options: undefined };
    const timeoutMs = job.options?.t ?? watched.timeoutMs;
    const cameWithCulprit = culprit !== undefined && id !== culprit && token === held.get(culprit)!.token;
    // The token is the time of the claim in µs.
    if (cameWithCulprit || nowMs - Number(token) / 1000 < timeoutMs + graceMs) {
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

/** Whether the main loop is in the handler of this job. */
function isInside(id: string): boolean {
  const length = inside[0]!;
  if (length === 0 || length !== Math.min(id.length, inside.length - 1)) return false;
  for (let i = 0; i < length; i++) if (inside[i + 1] !== (id.charCodeAt(i) & 0xff)) return false;
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
