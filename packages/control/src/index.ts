// @sluice/control: what operators and programs ask of a running Sluice, as routes for @sluice/rest.
export { Control, type ControlOptions } from './control.js';
export { controlErrors } from './errors.js';
export type { ControlParts } from './parts.js';
export type { JobReply } from './jobRoutes.js';
export { OverviewSource } from './overview.js';
export type { Attention, Overview, OverviewParts } from './overview.js';
export type { QueueRow } from './reserved.js';
export type { Trace, TracedJob } from './trace.js';
