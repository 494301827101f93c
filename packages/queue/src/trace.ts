// Traces that travel with the job: the producer's context is written into the job's options, and the handler runs in a span
// that belongs to it. Only the OpenTelemetry API is used; without an SDK, or without an active context, nothing happens. A
// queue asks for any of this only when it was opened with `tracing: true`.
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, context, propagation, trace } from '@opentelemetry/api';
import type { Span } from '@opentelemetry/api';
import type { Job } from './job.js';

export type TraceCarrier = Record<string, string>;

const tracerName = '@sluice/queue';

/** The active context in the form that is stored with a job, or nothing when there is none. */
export function injectTrace(): TraceCarrier | undefined {
  const carrier: TraceCarrier = {};
  propagation.inject(context.active(), carrier);
  return Object.keys(carrier).length > 0 ? carrier : undefined;
}

/**
 * Runs a handler in a consumer span. The span continues the producer's trace and also links to its span, because a job
 * that retries, or waits for days, is found from either side. What the handler returns is returned as it is.
 */
export function runInSpan<T>(
  job: Pick<Job, 'id' | 'queue' | 'attempt'>,
  carrier: TraceCarrier | undefined,
  fn: () => T,
): T {
  const parent = carrier ? propagation.extract(ROOT_CONTEXT, carrier) : ROOT_CONTEXT;
  const producer = trace.getSpanContext(parent);
  const options = {
    kind: SpanKind.CONSUMER,
    attributes: {
      'messaging.system': 'sluice',
      'messaging.operation.type': 'process',
      'messaging.destination.name': job.queue,
      'messaging.message.id': job.id,
      'sluice.attempt': job.attempt,
    },
    ...(producer && { links: [{ context: producer }] }),
  };
  const span = trace.getTracer(tracerName).startSpan(`process ${job.queue}`, options, parent);
  let result: T;
  try {
    result = context.with(trace.setSpan(parent, span), fn);
  } catch (error) {
    fail(span, error);
    throw error;
  }
  if (!(result instanceof Promise)) {
    span.end();
    return result;
  }
  return result.then(
    (value: unknown) => {
      span.end();
      return value;
    },
    (error: unknown) => {
      fail(span, error);
      throw error;
    },
  ) as T;
}

function fail(span: Span, error: unknown): void {
  const message = error instanceof Error ? error.message : String(error);
  span.recordException(error instanceof Error ? error : message);
  span.setStatus({ code: SpanStatusCode.ERROR, message });
  span.end();
}
