/** Traces at `npm start`: a collector gets spans of a request and of the job that it caused, in one trace; one that is away harms nobody. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@sluice/testbed';
import { newDataDir, startServer } from './serverProcess.js';

const PATIENCE = { timeoutMs: 60_000 };
const ROLES = { SLUICE_ROLES: 'queues,api,uploads,relay' };

interface Span {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  attributes: { key: string; value: Record<string, unknown> }[];
}

interface Sent {
  resourceSpans: {
    resource: { attributes: { key: string; value: { stringValue?: string } }[] };
    scopeSpans: { spans: Span[] }[];
  }[];
}

async function startCollector(t: TestContext) {
  const spans: Span[] = [];
  const said: string[] = [];
  const services = new Set<string>();
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const bytes = Buffer.concat(pieces);
      const text = (request.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes).toString();
      said.push(`${request.method} ${request.url} ${text}`);
      for (const { resource, scopeSpans } of (JSON.parse(text) as Sent).resourceSpans) {
        const name = resource.attributes.find(({ key }) => key === 'service.name');
        services.add(name?.value.stringValue ?? '');
        spans.push(...scopeSpans.flatMap((scope) => scope.spans));
      }
      response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans, said, services };
}

test('a request and the job that it caused are spans of the caller’s trace', async (t) => {
  const collector = await startCollector(t);
  const server = await startServer(newDataDir(), {
    ...ROLES,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_SERVICE_NAME: 'sluice-test',
  });
  const traceId = '0af7651916cd43dd8448eb211c80319c';
  const callerId = 'b7ad6b7169203331';
  const headers = { traceparent: `00-${traceId}-${callerId}-01`, 'Content-Type': 'application/json' };
  const body = JSON.stringify({ drive: 'main', path: 'a.bin', chunkSize: 5 });
  const begun = await fetch(`${server.url}/v1/uploads`, { method: 'POST', headers, body });
  const { id } = (await begun.json()) as { id: string };
  for (const number of [0, 1])
    await fetch(`${server.url}/v1/uploads/${id}/chunks/${number}`, { method: 'PUT', body: 'abcde' });
  const complete = await fetch(`${server.url}/v1/uploads/${id}/complete`, {
    method: 'POST',
    headers: { traceparent: headers.traceparent },
  });
  assert.ok(complete.status < 300, await complete.text());
  await fetch(`${server.url}/v1/files/main/nothing?signature=canary-of-a-secret`);
  const mine = () => collector.spans.filter((span) => span.traceId === traceId);
  const job = () => mine().find(({ name }) => name === 'process uploads');
  const begin = () => mine().find(({ name }) => name === 'POST /v1/uploads');
  await waitUntil('the collector has both', () => job() !== undefined && begin() !== undefined, PATIENCE);
  const request = begin()!;
  assert.equal(request.parentSpanId, callerId);
  const [serverKind, consumerKind] = [2, 5];
  assert.deepEqual([request.kind, job()!.kind], [serverKind, consumerKind]);
  // The request that caused it may end after it, and come with the next ones.
  const isCause = ({ kind, spanId }: Span) => kind === serverKind && spanId === job()!.parentSpanId;
  await waitUntil('its cause is a request', () => mine().some(isCause), PATIENCE);
  const valueOf = ({ attributes }: Span, name: string) => attributes.find(({ key }) => key === name)?.value;
  assert.deepEqual(valueOf(request, 'http.response.status_code'), { intValue: 201 });
  assert.deepEqual(valueOf(request, 'http.route'), { stringValue: '/v1/uploads' });
  const isMissing = ({ attributes }: Span) =>
    attributes.some(({ value }) => value['stringValue'] === '/v1/files/main/nothing');
  await waitUntil('the other request is there', () => collector.spans.some(isMissing), PATIENCE);
  assert.deepEqual([...collector.services], ['sluice-test']);
  assert.ok(collector.said.every((text) => text.startsWith('POST /v1/traces ')));
  assert.ok(!collector.said.some((text) => text.includes('canary')));
  assert.equal(await server.end('SIGTERM'), 0);
});

test('a collector that is away changes nothing, and an address that is none is refused', async () => {
  // Ports below 1024 are not given to tests: nobody comes to listen there meanwhile.
  const nobody = 'http://127.0.0.1:9';
  const server = await startServer(newDataDir(), { ...ROLES, OTEL_EXPORTER_OTLP_ENDPOINT: nobody });
  const put = await fetch(`${server.url}/v1/files/main/a`, { method: 'PUT', body: 'a' });
  assert.equal(put.status, 201);
  assert.equal(await server.end('SIGTERM'), 0);
  const wrong = startServer(newDataDir(), { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' });
  await assert.rejects(wrong, /OTEL_EXPORTER_OTLP_ENDPOINT/);
});
