// Server-sent events as they are on the wire.
import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import Fastify from 'fastify';
import { EventStream } from '../src/index.js';

async function streaming(
  t: TestContext,
  use: (stream: EventStream) => void,
  onEnd = () => {},
): Promise<string> {
  const server = Fastify();
  server.get('/', async (_request, reply) => {
    use(new EventStream(reply, onEnd));
    return reply;
  });
  await server.listen({ host: '127.0.0.1', port: 0 });
  t.after(() => {
    server.server.closeAllConnections();
    return server.close();
  });
  return `http://127.0.0.1:${(server.server.address() as AddressInfo).port}/`;
}

test('a stream is open before it has anything to tell', async (t) => {
  let ended = 0;
  const url = await streaming(
    t,
    () => {},
    () => (ended += 1),
  );
  const stop = new AbortController();
  const reply = await fetch(url, { signal: stop.signal });
  assert.equal(reply.status, 200);
  assert.match(reply.headers.get('content-type')!, /^text\/event-stream/);
  assert.equal(ended, 0);
  stop.abort();
});

test('a stream says where it begins, and then its events with their ids', async (t) => {
  const url = await streaming(t, (stream) => {
    stream.begin('5-0');
    stream.send('events', { a: 1 }, '5-1');
    stream.send('overview', 'two\nlines');
    stream.end();
  });
  const text = await (await fetch(url)).text();
  assert.equal(
    text,
    'id: 5-0\n\nevent: events\nid: 5-1\ndata: {"a":1}\n\nevent: overview\ndata: "two\\nlines"\n\n',
  );
});
