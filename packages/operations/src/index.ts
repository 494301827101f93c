// @sluice/operations: bulk operations of operators as resumable background jobs.
export { Operations, operationsQueue } from './operations.js';
export type { ListOptions, OperationPage, OperationPreview, OperationsOptions, Scope } from './operations.js';
export { operationStates } from './book.js';
export type { Operation, OperationState, Progress } from './book.js';
export type { OperationChoice, OperationKind, OperationRequest } from './request.js';
export type { FindQueue } from './runner.js';
export { operationErrors } from './errors.js';
