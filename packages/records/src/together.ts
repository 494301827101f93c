/**
 * Small files that are recorded together. A transaction of its own costs PostgreSQL and this process twice what the rows of a small
 * file cost. So while some are being recorded, those that come meanwhile wait, and share the next transaction; whoever comes alone goes
 * at once.
 *
 * A transaction has one outcome. Where one file is refused, or meets a lock that is not given up at once, none is recorded, and each
 * is tried by itself: it gets its own answer. Nobody waits long for those before it either: after a moment a file goes by itself.
 */
import { isSluiceError } from '@sluice/base';
import type { Database } from './database.js';

const FILES_AT_MOST = 32;
/** Far longer than a transaction takes where nothing is wrong. */
const PATIENCE_MS = 250;
const TOGETHER_MS = 1_000;

/** The argument of `sluice_store_whole`. */
export interface WholeFile {
  tenant: string;
  drive: string;
  path: string;
}

interface Waiting {
  file: WholeFile;
  resolve: (answer: unknown) => void;
  reject: (error: unknown) => void;
  patience: NodeJS.Timeout;
}

export class Together {
  /** By drive, whose locks its files share anyway: those that wait until the files before them are recorded. */
  private readonly waiting = new Map<string, Set<Waiting>>();

  constructor(private readonly database: Pick<Database, 'call'>) {}

  store<Answer>(file: WholeFile): Promise<Answer> {
    const drive = JSON.stringify([file.tenant, file.drive]);
    const others = this.waiting.get(drive);
    if (others)
      return new Promise((resolve, reject) => this.line(others, file, resolve as () => void, reject));
    this.waiting.set(drive, new Set());
    return this.alone<Answer>(file).finally(() => this.next(drive));
  }

  private line(others: Set<Waiting>, file: WholeFile, resolve: () => void, reject: () => void): void {
    const patience = setTimeout(() => {
      others.delete(one);
      this.alone(file).then(resolve, reject);
    }, PATIENCE_MS);
    const one: Waiting = { file, resolve, reject, patience };
    others.add(one);
  }

  private next(drive: string): void {
    const waiting = this.waiting.get(drive)!;
    const some = [...waiting].slice(0, FILES_AT_MOST);
    if (some.length === 0) return void this.waiting.delete(drive);
    for (const one of some) {
      clearTimeout(one.patience);
      waiting.delete(one);
    }
    void this.record(some).finally(() => this.next(drive));
  }

  private async record(some: Waiting[]): Promise<void> {
    // Everybody's order is the same, so that two who store the same files do not wait for each other in a circle.
    some.sort((a, b) => (a.file.path < b.file.path ? -1 : Number(a.file.path > b.file.path)));
    const files = some.map(({ file }) => file);
    try {
      const limit = { deadlineMs: TOGETHER_MS };
      const answers = await this.database.call<unknown[]>('sluice_store_together', { files }, limit);
      for (const [i, { resolve }] of some.entries()) resolve(answers[i]);
    } catch (error) {
      const mayHaveRun = isSluiceError(error) && error.details?.['outcomeUnknown'] === true;
      await Promise.all(
        some.map(({ file, resolve, reject }) => this.alone(file, mayHaveRun).then(resolve, reject)),
      );
    }
  }

  private alone<Answer>(file: WholeFile, mayHaveRun = false): Promise<Answer> {
    return this.database.call<Answer>('sluice_store_whole', file, { mayHaveRun });
  }
}
