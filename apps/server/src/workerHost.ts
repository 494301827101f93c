/**
 * The workers of this process: one per queue, started together, stopped together.
 *
 * A worker that cannot reach Redis goes on trying by itself and says so once; while any of them does, the host is not
 * ready. Stopping means draining: nothing more is claimed, running jobs may end until the deadline, and what is still
 * running then is aborted and goes back to its queue at once.
 */
import { withDeadline, type Logger } from '@sluice/base';
import { prometheusText, Queue, type Worker } from '@sluice/queue';
import type { MetricsSource, ReadyCheck } from './http.js';
import type { QueueWork } from './handlers.js';

/** Of the time for a stop, so much is kept for giving unfinished jobs back. */
const GIVE_BACK_MS = 3_000;
/** Prometheus gives up after ten seconds. */
const FIGURES_DEADLINE_MS = 2_000;

export interface WorkerHostOptions {
  redisUrl: string;
  work: QueueWork[];
  leaseMs: number;
  /** Jobs run in spans that continue the traces of whoever added them. */
  tracing: boolean;
  /** Whether the figures of these queues are told here, and not by somebody who tells those of all. */
  tellsQueues: boolean;
  logger: Logger;
}

export class WorkerHost {
  readonly #options: WorkerHostOptions;
  readonly #queues: Queue[] = [];
  readonly #workers: Worker[] = [];
  readonly #degraded = new Set<string>();
  #state: 'starting' | 'working' | 'stopping' = 'starting';

  constructor(options: WorkerHostOptions) {
    this.#options = options;
  }

  /** Resolves when every worker holds its lease. */
  async start(): Promise<void> {
    const { redisUrl, work, leaseMs, tracing, logger } = this.#options;
    for (const { name, concurrency, handler } of work) {
      const queue = new Queue(name, { redis: redisUrl, tracing, logger });
      const worker = queue.work(handler, { leaseMs, ...(concurrency !== undefined && { concurrency }) });
      worker.on('degraded', () => this.#degraded.add(name));
      worker.on('recovered', () => this.#degraded.delete(name));
      this.#queues.push(queue);
      this.#workers.push(worker);
    }
    await Promise.all(this.#workers.map((worker) => worker.start()));
    this.#state = 'working';
  }

  async stop(deadlineMs: number): Promise<void> {
    this.#state = 'stopping';
    const drainMs = Math.max(deadlineMs - GIVE_BACK_MS, deadlineMs / 2);
    const tooLate = (): Error => new Error(`the workers did not stop within ${deadlineMs} ms`);
    const closing = this.#queues.map((queue) => queue.close(Math.floor(drainMs)));
    await withDeadline(Promise.all(closing), deadlineMs, tooLate);
  }

  /** Ready means: jobs that are added now are started now. */
  readonly check: ReadyCheck = async () => {
    if (this.#state !== 'working') throw new Error(this.#state);
    if (this.#degraded.size > 0) throw new Error(`degraded: ${[...this.#degraded].join(', ')}`);
  };

  /** Figures of the queues, from Redis, and of the workers here. While Redis is away only the latter are there. */
  readonly metrics: MetricsSource = async () => {
    const isTold = this.#options.tellsQueues && this.#state !== 'starting';
    const asked = isTold ? prometheusText(this.#queues) : Promise.resolve('');
    const queues = await withDeadline(asked, FIGURES_DEADLINE_MS, () => new Error('too late')).catch(
      () => '',
    );
    return queues + this.#ownFigures();
  };

  #ownFigures(): string {
    const figures: [name: string, help: string, valueOf: (worker: Worker) => number][] = [
      ['sluice_worker_running_jobs', 'Jobs that run in this process.', (worker) => worker.running],
      [
        'sluice_worker_degraded',
        'Whether the worker of this process cannot work, because Redis is away.',
        (worker) => (this.#degraded.has(worker.queue.name) ? 1 : 0),
      ],
    ];
    return figures
      .map(([name, help, valueOf]) => {
        const lines = this.#workers.map(
          (worker) => `${name}{queue="${worker.queue.name}"} ${valueOf(worker)}\n`,
        );
        return `# HELP ${name} ${help}\n# TYPE ${name} gauge\n${lines.join('')}`;
      })
      .join('');
  }
}
