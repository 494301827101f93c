// @sluice/alerts: holds figures against thresholds and tells once when one is crossed, and once when it is kept again.
export { Alerts, type AlertRow, type AlertsOptions } from './alerts.js';
export { alertRoutes } from './routes.js';
export { alertErrors, isKeptWell, thresholds } from './threshold.js';
export type { Limits, Threshold, ThresholdName } from './threshold.js';
export { measure, type Figures, type Measured, type Questions } from './measure.js';
export { keyNames } from './keys.js';
