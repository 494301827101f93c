// Forgets rows of the audit log when their time has come: now and then, some thousand at a time.
import { silentLogger, type Logger } from '@sluice/base';
import type { Audit } from '@sluice/records';

const everyMs = 3_600_000;
/** So many rounds at once; the rest the next time. */
const mostRounds = 100;

export interface AuditPrunerOptions {
  audit: Pick<Audit, 'prune'>;
  keepMs: number;
  logger?: Logger;
}

export class AuditPruner {
  readonly #options: AuditPrunerOptions;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;

  constructor(options: AuditPrunerOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.prune(), everyMs).unref();
    void this.prune();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.#running;
  }

  prune(): Promise<void> {
    this.#running ??= this.#rounds().finally(() => (this.#running = undefined));
    return this.#running;
  }

  async #rounds(): Promise<void> {
    const { audit, keepMs, logger = silentLogger } = this.#options;
    try {
      for (let round = 0; round < mostRounds; round++) if ((await audit.prune(keepMs)) === 0) return;
    } catch (err) {
      logger.warn({ err }, 'old rows of the audit log were not removed; the next time they will be');
    }
  }
}
