// Jobs that come back. Every start of a program may set its schedules: setting the same one again changes nothing.
import { once } from 'node:events';
import { Queue } from '@sluice/queue';

const chores = new Queue<string>('chores', { redis: process.argv[2] ?? 'redis://127.0.0.1:6379' });

await chores.schedules.set('backup', { cron: '30 2 * * *', timeZone: 'Europe/Berlin' }, 'back up');
await chores.schedules.set('pulse', { everyMs: 1_000 }, 'still here', { unique: 'pulse', missed: 'skip' });

const worker = chores.work((job) => console.log(job.data));
await once(worker, 'done');
await once(worker, 'done');
await chores.schedules.remove('pulse');

const [backup] = await chores.schedules.list();
console.log(backup!.name, new Date(backup!.nextMs!) > new Date());
await chores.close();

// Prints:
// still here
// still here
// backup true
