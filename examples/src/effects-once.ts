// Delivery is at least once: a worker may die after its effect and before it could say so, or be given up and wake up later.
// Two guards in the place that is written to make the effect happen once, whatever dies: the job's id as the
// idempotency key, and the token of the claim, which only grows, as the fence.
import { Queue } from '@sluice/queue';

/** Stands for a table of yours; both checks and the write are one transaction there. */
const account = { cents: 0, booked: new Set<string>(), fence: 0n };

function deposit(cents: number, key: string, token: string): string {
  if (BigInt(token) < account.fence) return 'refused: a newer worker has been here';
  account.fence = BigInt(token);
  if (account.booked.has(key)) return 'nothing to do: it was booked before';
  account.booked.add(key);
  account.cents += cents;
  return 'booked';
}

const deposits = new Queue<{ cents: number }>('deposits', {
  redis: process.argv[2] ?? 'redis://127.0.0.1:6379',
  backoff: { type: 'fixed', delayMs: 50 },
});

let firstToken = '';
deposits.work(async (job) => {
  firstToken ||= job.token;
  console.log(deposit(job.data.cents, job.id, job.token));
  if (job.attempt === 1) throw new Error('the power went out before anybody heard of it');
});

const { id } = await deposits.add({ cents: 500 }, { id: 'deposit-1' });
await deposits.result(id);
console.log(deposit(500, 'deposit-2', firstToken), '(a worker that slept through it all)');
console.log(account.cents);
await deposits.close();

// Prints:
// booked
// nothing to do: it was booked before
// refused: a newer worker has been here (a worker that slept through it all)
// 500
