// Delivery is at least once: a worker may die after its effect and before it could say so, or be given up and wake up later.
// Two guards, in the places that are written to, make the effect happen once all the same.
import { Queue } from '@sluice/queue';

/** An idempotency key: whoever brings it again changes nothing. Payment providers work like this. */
const charges = new Set<string>();
function charge(key: string): string {
  if (charges.has(key)) return 'charged before';
  charges.add(key);
  return 'charged';
}

/** A fence: UPDATE invoice SET text = $1, token = $2 WHERE id = $3 AND token <= $2. */
const invoice = { text: '', token: 0n };
function save(text: string, token: string): string {
  if (BigInt(token) < invoice.token) return `refused "${text}"`;
  Object.assign(invoice, { text, token: BigInt(token) });
  return `saved "${text}"`;
}

const invoices = new Queue<{ cents: number }>('invoices', {
  redis: process.argv[2] ?? 'redis://127.0.0.1:6379',
  backoff: { type: 'fixed', delayMs: 50 },
});

let wakeUpLater = () => '';
invoices.work(async (job) => {
  console.log(charge(job.id)); // the job's id is the same in every attempt
  if (job.attempt === 1) {
    wakeUpLater = () => save('an outdated text', job.token);
    throw new Error('the network is gone, and the worker thinks that it failed');
  }
  console.log(save(`${job.data.cents} cents`, job.token)); // its token grows with every claim
});

const { id } = await invoices.add({ cents: 500 }, { id: 'invoice-1' });
await invoices.result(id);
console.log(wakeUpLater());
await invoices.close();

// Prints:
// charged
// charged before
// saved "500 cents"
// refused "an outdated text"
