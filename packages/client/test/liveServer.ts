/** A server of live updates as `GET /v1/live` is one, with a page that watches it; it can be restarted, and it can refuse. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '@sluice/testbed';
import { build } from 'esbuild';

const BEAT_MS = 250;
/** This file runs from `dist/test/`. */
const FOLDER = fileURLToPath(new URL('../..', import.meta.url));

/** `?locks=off` is a page that was not loaded over https; patience is short, so that a test needs little of it. */
const PAGE = `<!doctype html><title>live</title><script type="module">
const { searchParams } = new URL(location);
if (searchParams.has('locks')) Object.defineProperty(navigator, 'locks', { value: undefined });
const { live } = await import('/live.js');
window.numbers = [];
window.states = [];
window.snapshot = undefined;
window.watch = live({
  url: '/v1/live?topics=overview,events',
  patienceMs: Number(searchParams.get('patience') ?? 60_000),
  onUpdate: (topic, data) => (topic === 'events' ? window.numbers.push(data.number) : (window.snapshot = data)),
  onState: (state) => window.states.push(state),
});
</script>`;

export async function bundle(): Promise<Uint8Array> {
  const { outputFiles } = await build({
    entryPoints: [join(FOLDER, 'dist/src/live.js')],
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    write: false,
  });
  return outputFiles[0]!.contents;
}

export class LiveServer {
  /** Answered instead of a stream, while it is set. */
  refusal: number | undefined;
  readonly streams = new Set<ServerResponse>();
  /** What each stream asked to go on after. */
  readonly resumed: (string | undefined)[] = [];
  readonly #script: Uint8Array;
  #published = 0;
  #server: Server | undefined;
  #port = 0;
  #beat: NodeJS.Timeout | undefined;

  static async start(): Promise<LiveServer> {
    const server = new LiveServer(await bundle());
    await server.start();
    return server;
  }

  private constructor(script: Uint8Array) {
    this.#script = script;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/`;
  }

  /** Always on the port of the first time. It is none that the kernel gives to connections, which could have it while we are away. */
  async start(): Promise<void> {
    this.#port ||= await freePort();
    const server = createServer((request, reply) => this.#answer(request, reply));
    server.listen(this.#port, '127.0.0.1');
    await once(server, 'listening');
    this.#server = server;
    this.#beat = setInterval(
      () => this.streams.forEach((stream) => stream.write(': still here\n\n')),
      BEAT_MS,
    );
  }

  async stop(): Promise<void> {
    clearInterval(this.#beat);
    this.#server?.closeAllConnections();
    await new Promise((resolve) => this.#server?.close(resolve));
    this.streams.clear();
  }

  /** Events are numbered from 1 and never forgotten. */
  publish(): number {
    this.#published += 1;
    for (const stream of this.streams) send(stream, this.#published);
    return this.#published;
  }

  #answer(request: IncomingMessage, reply: ServerResponse): void {
    const path = request.url!.split('?')[0];
    if (path === '/v1/live') return this.#stream(request, reply);
    const pages: Record<string, [type: string, body: string | Uint8Array]> = {
      '/': ['text/html', PAGE],
      '/live.js': ['text/javascript', this.#script],
      '/ping': ['text/plain', 'pong'],
    };
    const page = pages[path!];
    if (page) reply.setHeader('Content-Type', page[0]);
    reply.writeHead(page ? 200 : 404).end(page?.[1]);
  }

  #stream(request: IncomingMessage, reply: ServerResponse): void {
    if (this.refusal !== undefined) return void reply.writeHead(this.refusal).end();
    const last = request.headers['last-event-id'] as string | undefined;
    this.resumed.push(last);
    reply.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
    reply.write(`event: overview\ndata: {"streams":${this.resumed.length}}\n\n`);
    const from = last === undefined ? this.#published : Number(last.split('-')[1]);
    if (last === undefined) reply.write(`event: hello\nid: 1-${this.#published}\n\n`);
    for (let number = from + 1; number <= this.#published; number++) send(reply, number);
    this.streams.add(reply);
    reply.once('close', () => this.streams.delete(reply));
  }
}

function send(stream: ServerResponse, number: number): void {
  stream.write(`event: events\nid: 1-${number}\ndata: {"number":${number}}\n\n`);
}
