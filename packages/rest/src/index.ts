// @sluice/rest: the HTTP interface: uploads, files, nodes, drives, tokens and links.
export { notFound, refuse, rest, routes } from './rest.js';
export type { RestOptions } from './rest.js';
export { answerHeaders, markAnswers, requestIdOf } from './everyAnswer.js';
export { checkInsider, isInsider } from './insiders.js';
export { endStreams, EventStream } from './eventStream.js';
export { openStream } from './openStream.js';
export { nodeView } from './nodeRoutes.js';
export { serverOptions } from './serverOptions.js';
export type { Call, JsonSchema, Route } from './route.js';
export { restErrors } from './errors.js';
export { ServiceKeys } from './serviceKeys.js';
