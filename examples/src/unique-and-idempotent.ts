// Adding twice what should be there once.
import { Queue } from '@sluice/queue';

const orders = new Queue<string>('orders', { redis: process.argv[2] ?? 'redis://127.0.0.1:6379' });

// An id of your own: a request that is sent again adds nothing, up to an hour after the job has ended.
await orders.add('three apples', { id: 'order-7' });
const again = await orders.add('three apples', { id: 'order-7' });
console.log('order-7 is there already:', again.duplicate);

// A unique key: one job at a time; the next one is accepted when this one has ended.
const report = await orders.add('monthly report', { unique: 'report' });
const impatient = await orders.add('monthly report', { unique: 'report' });
console.log('the report is on its way:', impatient.id === report.id);

// A unique key with a window: one job per hour, however fast it is done.
await orders.add('price list', { unique: { key: 'prices', windowMs: 3_600_000 } });
const early = await orders.add('price list', { unique: { key: 'prices', windowMs: 3_600_000 } });
console.log('the prices had their turn:', early.duplicate);

console.log('waiting:', (await orders.counts()).waiting);
await orders.close();

// Prints:
// order-7 is there already: true
// the report is on its way: true
// the prices had their turn: true
// waiting: 3
