// A worker in a process of its own, which tests stop, block and kill.
import { Queue } from '../src/index.js';

interface Settings {
  redis: string;
  queue: string;
  mode: 'hang' | 'block' | 'answer' | 'poison' | 'spin' | 'spinAtOnce';
  leaseMs: number;
  concurrency?: number;
  blockMs?: number;
  answer?: string;
  afterMs?: number;
  timeoutMs?: number;
  attempts?: number;
  keepResultMs?: number;
}

const settings = JSON.parse(process.argv[2]!) as Settings;
const { redis, mode, leaseMs, timeoutMs, attempts, keepResultMs } = settings;
const queue = new Queue<string>(settings.queue, {
  redis,
  ...(timeoutMs !== undefined && { timeoutMs }),
  ...(attempts !== undefined && { attempts }),
  ...(keepResultMs !== undefined && { keepResultMs }),
});
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

const worker = queue.work(
  async (job) => {
    if (mode === 'spinAtOnce' && job.data === 'spin') for (;;);
    const { id, attempt, crashes, token } = job;
    await new Promise((resolve) =>
      process.send!({ id, attempt, crashes, token, running: worker.running }, resolve),
    );
    if (mode === 'hang') await sleep(600_000);
    if (mode === 'block') for (const end = Date.now() + settings.blockMs!; Date.now() < end;);
    if (mode === 'spin') for (;;);
    if (mode === 'poison' && job.data === 'poison') {
      await sleep(100);
      process.kill(process.pid, 'SIGKILL');
    }
    if (mode === 'poison') await sleep(200);
    if (mode === 'answer') await sleep(settings.afterMs!);
    return settings.answer;
  },
  { leaseMs, concurrency: settings.concurrency ?? 5, name: `process-${process.pid}` },
);
await worker.start();
process.send!({ ready: true });
process.on('disconnect', () => process.exit(0));
