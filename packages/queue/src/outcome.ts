// What a handler can say besides "done" (return) and "failed" (throw). Each may be returned or thrown, whichever reads better:
//
//   return new RetryAt(new Date(Date.now() + 60_000));   counts as an attempt, but at a time of your choice
//   throw new Snooze(5_000);                              not now; consumes no attempt
//   throw new GiveUp('the account is closed');            no retry will help: to the dead letters at once

export class RetryAt extends Error {
  readonly atMs: number;

  constructor(at: Date | number, reason = 'the handler asked for a retry') {
    super(reason);
    this.name = 'RetryAt';
    this.atMs = Number(at);
  }
}

export class Snooze extends Error {
  readonly delayMs: number;

  constructor(delayMs: number) {
    super('snoozed');
    this.name = 'Snooze';
    this.delayMs = delayMs;
  }
}

export class GiveUp extends Error {
  constructor(reason: string, options?: { cause?: unknown }) {
    super(reason, options);
    this.name = 'GiveUp';
  }
}

export type Outcome = RetryAt | Snooze | GiveUp;

export function isOutcome(value: unknown): value is Outcome {
  return value instanceof RetryAt || value instanceof Snooze || value instanceof GiveUp;
}
