// What can be wrong with a question or an order to a running system.
import { defineErrors } from '@sluice/base';

export const controlErrors = defineErrors({
  JOB_NOT_FOUND: {
    message: (d: { queue: string; id: string }) =>
      `queue "${d.queue}" knows no job "${d.id}"; one that is done is remembered only if it has an id of its own or keeps its result`,
    retryable: false,
  },
  QUEUE_RESERVED: {
    message: (d: { queue: string }) =>
      `queue "${d.queue}" is Sluice's own: its jobs are neither added nor changed here. Start an upload or an operation, which adds them; its dead letters can be replayed or discarded as they are`,
    retryable: false,
  },
  LETTER_NOT_FOUND: {
    message: (d: { queue: string; id: string }) =>
      `queue "${d.queue}" has no dead letter "${d.id}"; it may have been replayed or discarded`,
    retryable: false,
  },
  JOB_STATE: {
    message: (d: { id: string; state: string; wanted: string }) =>
      `job "${d.id}" is ${d.state}; this works for jobs that are ${d.wanted}`,
    retryable: false,
  },
  WORKER_NOT_FOUND: {
    message: (d: { queue: string; session: string }) =>
      `no worker of queue "${d.queue}" has the session "${d.session}"; see GET /v1/workers`,
    retryable: false,
  },
  SCHEDULE_NOT_FOUND: {
    message: (d: { queue: string; name: string }) => `queue "${d.queue}" has no schedule "${d.name}"`,
    retryable: false,
  },
  OPERATION_NOT_FOUND: {
    message: (d: { id: string }) => `there is no operation "${d.id}"; see GET /v1/operations`,
    retryable: false,
  },
  OPERATION_STATE: {
    message: (d: { id: string; state: string }) =>
      `operation "${d.id}" is ${d.state}; only one that failed can be resumed`,
    retryable: false,
  },
  FAMILY_NOT_FOUND: {
    message: (d: { family: string; known: string }) =>
      `no process caches anything called "${d.family}"; there are ${d.known}`,
    retryable: false,
  },
  VALUE_NOT_FOUND: {
    message: (d: { family: string }) =>
      `the value is not in Redis, and only the processes that opened "${d.family}" can load it`,
    retryable: false,
  },
  TRACE_NOT_FOUND: {
    message: (d: { id: string }) => `nothing is known of "${d.id}": no upload, no file, no event, no job`,
    retryable: false,
  },
});
