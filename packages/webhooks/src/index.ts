// @sluice/webhooks: tells other programs of events: signed, retried on the queue, and never into a network that is none of theirs.
export { everything, Webhooks, webhookQueue } from './webhooks.js';
export type { WebhookDraft, WebhooksOptions, WebhookView } from './webhooks.js';
export type { WebhookEvent } from './event.js';
export type { Delivery } from './deliveries.js';
export { FanOut } from './fanOut.js';
export { JobFollower, type JobFollowerOptions } from './jobFollower.js';
export { AllowedNetworks } from './address.js';
export type { Resolve } from './target.js';
export { sign, verify, type Received } from './signature.js';
export { webhookErrors } from './errors.js';
export { webhookRoutes } from './routes.js';
export { keyNames } from './keys.js';
