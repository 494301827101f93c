/**
 * Structured logs through an injected logger.
 *
 * The interface is the part of pino that everybody uses: fields first, message second, so that a pino
 * logger fits as it is. `consoleLogger` needs no dependency and writes one JSON line per record.
 * A logger must never break what it reports on: fields that cannot be written are replaced, not thrown. Nor must it tell secrets.
 */

import { redactor, type Redact } from './redact.js';

export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export const logLevels = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof logLevels)[number];

export interface ConsoleLoggerOptions {
  /** The least important level that is written. */
  level?: LogLevel;
  /** Receives one line, with its line end. */
  write?: (line: string) => void;
  now?: () => number;
  /** Takes secrets out; also without it what looks like one is taken out. */
  redact?: Redact;
}

export function consoleLogger(options: ConsoleLoggerOptions = {}): Logger {
  const { level: least = 'info', now = Date.now, redact = redactor() } = options;
  const write = options.write ?? ((line: string) => void process.stdout.write(line));
  const at = (level: LogLevel) =>
    logLevels.indexOf(level) < logLevels.indexOf(least)
      ? ignore
      : (fields: object, message: string) => write(toLine(level, now(), fields, message, redact));
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

export const silentLogger: Logger = { debug: ignore, info: ignore, warn: ignore, error: ignore };

/** Whether a record of this level is written at all; for those who would have to gather it first. */
export function writes(logger: Logger, level: LogLevel): boolean {
  return logger[level] !== ignore;
}

function ignore(): void {}

function toLine(level: LogLevel, nowMs: number, fields: object, message: string, redact: Redact): string {
  const head = { level, time: new Date(nowMs).toISOString() };
  try {
    return (
      JSON.stringify({ ...head, ...fields, msg: message }, (name, value) => redact(name, writable(value))) +
      '\n'
    );
  } catch {
    // A cycle, or a getter or toJSON that throws. The message still gets out.
    return JSON.stringify({ ...head, msg: redact('msg', message), fields: 'could not be written' }) + '\n';
  }
}

/** JSON has no errors (they become `{}`) and no big integers (they throw). */
function writable(value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  if (value instanceof Error) {
    // Own fields such as `code` and `details` come along; a cause is an error again and is written likewise.
    const { name, message, stack, cause } = value;
    return Object.assign({ name, message, stack, cause }, value);
  }
  return value;
}
