// Jobs that fail are tried again. What keeps failing waits among the dead letters until the cause is repaired.
import { GiveUp, Queue } from '@sluice/queue';

const payments = new Queue<{ card: string }>('payments', {
  redis: process.argv[2] ?? 'redis://127.0.0.1:6379',
  attempts: 3,
  backoff: { type: 'exponential', delayMs: 50, factor: 2, jitter: 0.5 },
  keepResultMs: 60_000,
});

let bankIsDown = true;
payments.work(async (job) => {
  if (job.data.card === 'stolen') throw new GiveUp('the card is blocked'); // no retry would help
  if (bankIsDown) throw new Error('the bank does not answer');
  console.log(`charged ${job.data.card}`);
});

const ada = await payments.add({ card: 'ada' });
const eve = await payments.add({ card: 'stolen' });
await Promise.allSettled([payments.result(ada.id), payments.result(eve.id)]);

const { letters } = await payments.dead.list(); // newest first
for (const { data, attemptCount, error } of letters) console.log(data, attemptCount, error.message);

bankIsDown = false;
const { moved } = await payments.dead.replay({ text: 'bank' }); // or one by its id, a group by its cause, all
await payments.result(ada.id);
console.log(`${moved} was replayed`);
await payments.close();

// Prints:
// { card: 'ada' } 3 the bank does not answer
// { card: 'stolen' } 1 the card is blocked
// charged ada
// 1 was replayed
