// All routes of this package over one set of parts, and what they share: one overview and one live update for everybody.
import { silentLogger, type Logger } from '@sluice/base';
import type { Route } from '@sluice/rest';
import { cacheRoutes } from './cacheRoutes.js';
import { deadRoutes } from './deadRoutes.js';
import { eventRoutes } from './eventRoutes.js';
import { jobRoutes } from './jobRoutes.js';
import { Live } from './live.js';
import { operationRoutes } from './operationRoutes.js';
import { OverviewSource } from './overview.js';
import { overviewRoutes } from './overviewRoutes.js';
import type { ControlParts } from './parts.js';
import { queueRoutes } from './queueRoutes.js';
import { traceRoutes } from './traceRoutes.js';
import { uploadListRoutes } from './uploadRoutes.js';
import { workerRoutes } from './workerRoutes.js';

export interface ControlOptions extends ControlParts {
  logger?: Logger;
}

export class Control {
  readonly routes: readonly Route[];
  readonly #live: Live;

  constructor({ logger = silentLogger, ...parts }: ControlOptions) {
    const overview = new OverviewSource(parts);
    this.#live = new Live(parts, overview, logger);
    this.routes = [
      ...overviewRoutes(overview, this.#live),
      ...queueRoutes(parts),
      ...jobRoutes(parts),
      ...deadRoutes(parts),
      ...operationRoutes(parts),
      ...workerRoutes(parts),
      ...uploadListRoutes(parts),
      ...cacheRoutes(parts),
      ...eventRoutes(parts),
      ...traceRoutes(parts),
    ];
  }

  /** Ends live updates; the parts stay their owner's. */
  close(): void {
    this.#live.close();
  }
}
