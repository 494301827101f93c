// Server-sent events: the head of such an answer, and writing that neither blocks nor piles up. Comments in between keep proxies from
// closing a quiet connection.
import type { Server, ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';

const quietMs = 15_000;
/** A client that does not read has this much waiting for it; then it is cut, and may come back. */
const unreadBytes = 1_048_576;

/** Streams that are open, by the server that they came to. */
const open = new WeakMap<Server, Set<EventStream>>();

/** Ends all streams of a server that stops: they would keep it until its deadline, and their clients come back by themselves. */
export function endStreams(server: Server): void {
  for (const stream of open.get(server) ?? []) stream.end();
}

export class EventStream {
  readonly #raw: ServerResponse;
  readonly #alive: NodeJS.Timeout;

  /** `onEnd` is called once, whoever ends it. */
  constructor(reply: FastifyReply, onEnd: () => void) {
    for (const [name, value] of Object.entries(reply.getHeaders()))
      if (value !== undefined) reply.raw.setHeader(name, value);
    this.#raw = reply.hijack().raw;
    this.#raw.writeHead(200, {
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-store',
      'X-Accel-Buffering': 'no',
    });
    // The client knows that it is connected before there is anything to tell.
    this.#raw.flushHeaders();
    this.#alive = setInterval(() => this.#write(': still here\n\n'), quietMs);
    const { server } = reply.server;
    const others = open.get(server) ?? new Set();
    open.set(server, others.add(this));
    const ended = (): void => {
      others.delete(this);
      clearInterval(this.#alive);
      onEnd();
    };
    // A client that was gone before we got here does not go once more.
    if (this.#raw.closed) setImmediate(ended);
    else this.#raw.once('close', ended);
  }

  send(event: string, data: unknown, id?: string | number): void {
    const line = id === undefined ? '' : `id: ${id}\n`;
    this.#write(`event: ${event}\n${line}data: ${JSON.stringify(data)}\n\n`);
  }

  /** Says where the stream begins: whoever is cut off before the first event comes back with this id, and has missed nothing. */
  begin(id: string | number): void {
    this.#write(`id: ${id}\n\n`);
  }

  end(): void {
    if (!this.#raw.writableEnded) this.#raw.end();
  }

  #write(text: string): void {
    if (this.#raw.writableEnded || this.#raw.destroyed) return;
    if (this.#raw.writableLength > unreadBytes) this.#raw.destroy();
    else this.#raw.write(text);
  }
}
