// A schema (zod, valibot, arktype: any Standard Schema) checks payloads where they are added and again where they are worked on.
import { Queue } from '@sluice/queue';
import { z } from 'zod';

const schema = z.object({ to: z.email(), copies: z.number().default(1) });
const prints = new Queue('prints', {
  redis: process.argv[2] ?? 'redis://127.0.0.1:6379',
  schema,
  keepResultMs: 60_000,
});

prints.work((job) => console.log(`${job.data.copies} × for ${job.data.to}`));

const { id } = await prints.add({ to: 'ada@example.com' });
await prints.result(id);
await prints.add({ to: 'nobody', copies: 1 }).catch((error: Error) => console.log(error.message));
await prints.close();

// Prints:
// 1 × for ada@example.com
// the payload does not fit its schema: to: Invalid email address
