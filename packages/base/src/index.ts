export { type Clock, ManualClock, systemClock, type Timer } from './clock.js';
export { defineErrors, type ErrorFactories, type ErrorRow, isSluiceError, SluiceError } from './errors.js';
export {
  DEFAULT_STOP_DEADLINE_MS,
  type Service,
  type ServiceSteps,
  sleep,
  startStop,
  withDeadline,
} from './lifecycle.js';
export {
  consoleLogger,
  type ConsoleLoggerOptions,
  type Logger,
  type LogLevel,
  logLevels,
  silentLogger,
  writes,
} from './logger.js';
export { redactor, type Redact } from './redact.js';
export { armFailPoints, type FailAction, failPoint } from './failPoint.js';
