/**
 * Errors that say what happened, to whom, and whether trying again helps.
 *
 * A package declares every error it can throw in one table; `defineErrors` turns the table into typed
 * factories. A code is therefore spelt once, its details are checked by the compiler, and a reader finds
 * everything that can go wrong in a package on one page:
 *
 *     const errors = defineErrors({
 *       QUEUE_FULL: { message: (d: { queue: string }) => `queue ${d.queue} is full`, retryable: true },
 *     });
 *     throw errors.QUEUE_FULL({ queue: 'mail' }, { cause });
 *
 * The code is the contract; messages may be reworded at any time.
 */

type Details = Readonly<Record<string, unknown>>;

export interface ErrorRow {
  /** `never` accepts a function of any details; the factory's type restores the real one. */
  readonly message: (details: never) => string;
  /** Whether the same call may succeed later without anybody changing anything. */
  readonly retryable: boolean;
}

type Factory<Code extends string, Message> = Message extends () => string
  ? (details?: Details, options?: { cause?: unknown }) => SluiceError<Code>
  : Message extends (details: infer D) => string
    ? (details: D, options?: { cause?: unknown }) => SluiceError<Code>
    : never;

export type ErrorFactories<Table extends Record<string, ErrorRow>> = {
  readonly [Code in keyof Table & string]: Factory<Code, Table[Code]['message']>;
};

export function defineErrors<const Table extends Record<string, ErrorRow>>(
  table: Table,
): ErrorFactories<Table> {
  const entries = Object.entries(table).map(([code, row]) => {
    const factory = (details?: Details, options?: { cause?: unknown }) => {
      const error = new SluiceError(code, (row.message as (d?: Details) => string)(details), {
        retryable: row.retryable,
        ...(details && { details }),
        ...options,
      });
      // The stack starts where the error is thrown, not in here.
      Error.captureStackTrace(error, factory);
      return error;
    };
    return [code, factory] as const;
  });
  return Object.fromEntries(entries) as unknown as ErrorFactories<Table>;
}

/** Registered globally, so that two installed copies of this package recognise each other's errors. */
const brand = Symbol.for('sluice.error');

export class SluiceError<Code extends string = string> extends Error {
  static {
    // On the prototype, because the stack's first line is written before an instance field would be set.
    this.prototype.name = 'SluiceError';
  }

  readonly code: Code;
  readonly retryable: boolean;
  readonly details?: Details;

  constructor(
    code: Code,
    message: string,
    options: { retryable?: boolean; details?: Details; cause?: unknown } = {},
  ) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined);
    this.code = code;
    this.retryable = options.retryable ?? false;
    if (options.details) this.details = options.details;
    Object.defineProperty(this, brand, { value: true });
  }
}

/** Safe to ask of anything that was thrown, also of a proxy whose traps throw. */
export function isSluiceError<Code extends string = string>(
  error: unknown,
  code?: Code,
): error is SluiceError<Code> {
  try {
    const branded = error as { [brand]?: true; code?: unknown } | null | undefined;
    return branded?.[brand] === true && (code === undefined || branded.code === code);
  } catch {
    return false;
  }
}
