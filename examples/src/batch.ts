// One call for many jobs, one outcome for each of them.
import { Queue } from '@sluice/queue';

const redis = process.argv[2] ?? 'redis://127.0.0.1:6379';
const rows = new Queue<number, string>('rows', { redis, attempts: 1, keepResultMs: 60_000 });

const added = await rows.addMany([{ data: 3 }, { data: -1 }, { data: 5 }]);

rows.workBatches(
  async (jobs) => {
    console.log(`writing ${jobs.length} rows at once`);
    return jobs.map((job) => (job.data < 0 ? new RangeError(`${job.data} is too small`) : `row ${job.data}`));
  },
  { batchSize: 100 },
);

for (const { id } of added) {
  console.log(await rows.result(id).catch((error: Error) => error.message.replace(id, '…')));
}
await rows.close();

// Prints:
// writing 3 rows at once
// row 3
// Job … of queue rows died: RangeError: -1 is too small. It can be replayed from the dead letters.
// row 5
