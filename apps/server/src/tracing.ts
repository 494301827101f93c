/**
 * Traces of requests and of jobs, sent to an OpenTelemetry collector (OTLP over HTTP) when one is configured. Only then is any of it
 * loaded: a server without a collector pays nothing.
 *
 * A request gets a span that continues the caller's trace (`traceparent`). What the request adds to a queue carries the trace along,
 * and the job runs in a span of the same trace, in whichever process it runs. Addresses are written without their query, which may
 * hold the signature of a link; no headers and no bodies are written at all.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { context, propagation, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { Context, Span } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { withDeadline } from '@sluice/base';

const TRACER = '@sluice/server';
/** How long spans are gathered before they are sent. */
const GATHER_MS = 1_000;
const LEAST_FLUSH_MS = 100;

export interface TracingOptions {
  /** Of the collector, without `/v1/traces`. */
  endpoint: string;
  serviceName: string;
  version: string;
}

export interface Tracing {
  /** Puts a span around every request. */
  follow(server: FastifyInstance): void;
  /** Sends what has been gathered, as far as the time goes. */
  stop(deadlineMs: number): Promise<void>;
}

export function startTracing({ endpoint, serviceName, version }: TracingOptions): Tracing {
  const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/$/, '')}/v1/traces` });
  const provider = new NodeTracerProvider({
    resource: resourceFromAttributes({ 'service.name': serviceName, 'service.version': version }),
    spanProcessors: [new BatchSpanProcessor(exporter, { scheduledDelayMillis: GATHER_MS })],
  });
  provider.register();
  return {
    follow: followRequests,
    stop: async (deadlineMs) => {
      const late = (): Error => new Error('the collector did not answer in time');
      // What a collector that is away does not get is not worth a failed stop.
      await withDeadline(provider.shutdown(), Math.max(deadlineMs / 4, LEAST_FLUSH_MS), late).catch(() => {});
    },
  };
}

function followRequests(server: FastifyInstance): void {
  const underWay = new WeakMap<FastifyRequest, { span: Span; inside: Context }>();
  const tracer = trace.getTracer(TRACER);
  const goOn = (request: FastifyRequest, _reply: FastifyReply, done: () => void): void => {
    context.with(underWay.get(request)?.inside ?? ROOT_CONTEXT, done);
  };
  server.addHook('onRequest', (request, reply, done) => {
    const parent = propagation.extract(ROOT_CONTEXT, request.headers);
    const { method } = request;
    const route = request.routeOptions.url;
    const span = tracer.startSpan(
      route === undefined ? method : `${method} ${route}`,
      {
        kind: SpanKind.SERVER,
        attributes: {
          'http.request.method': method,
          'url.path': request.url.split(/[?#]/, 1)[0]!,
          ...(route !== undefined && { 'http.route': route }),
        },
      },
      parent,
    );
    underWay.set(request, { span, inside: trace.setSpan(parent, span) });
    goOn(request, reply, done);
  });
  // A body that was read in between has left the context behind.
  server.addHook('preHandler', goOn);
  server.addHook('onResponse', (request, reply, done) => {
    const span = underWay.get(request)?.span;
    span?.setAttribute('http.response.status_code', reply.statusCode);
    if (reply.statusCode >= 500) span?.setStatus({ code: SpanStatusCode.ERROR });
    span?.end();
    done();
  });
}
