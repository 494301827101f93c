/**
 * A TCP proxy in front of a server, with a network's faults as switches that work at run time.
 *
 * The faults are those a Redis client meets: a slow link, refused and cut connections, a half-open connection
 * that swallows everything, bytes that arrive one by one, and the worst: a command that was carried out, whose
 * reply never comes back (`loseReplies`).
 */
import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net';
import { MessageCounter } from './messageCounter.js';

export interface LoseRepliesOptions {
  /** How many replies are swallowed before the connection is cut; 1 by default. */
  count?: number;
  /** Only the connection whose request satisfies this loses its replies: `(request) => request.includes('ack')`. */
  when?: (request: Buffer) => boolean;
}

export interface Proxy {
  readonly host: string;
  readonly port: number;
  readonly url: string;
  readonly connectionCount: number;
  /** Sends new connections to another port. */
  retarget(port: number): void;
  /** Delays every byte in both directions. */
  delay(ms: number): void;
  /** Writes every byte towards the client alone. */
  slice(on: boolean): void;
  /** Keeps connections open, accepts new ones, and lets nothing through. What was swallowed does not come back. */
  blackHole(on: boolean): void;
  /** Cuts all connections now. */
  cut(): void;
  /** Cuts all connections and every new one, until switched off. */
  refuse(on: boolean): void;
  /**
   * Lets the next request that matches through, swallows the replies of its connection and cuts it.
   * Resolves when that has happened.
   */
  loseReplies(options?: LoseRepliesOptions): Promise<void>;
  /** Switches all faults off. */
  heal(): void;
  stop(): Promise<void>;
}

export async function startProxy(targetPort: number): Promise<Proxy> {
  const proxy = new FaultyProxy(targetPort);
  await proxy.listen();
  return proxy;
}

interface Trap {
  count: number;
  when: (request: Buffer) => boolean;
  sprung: () => void;
}

/** One client's connection and its other half towards the server. */
class Link {
  readonly requests = new MessageCounter();
  readonly replies = new MessageCounter();
  /** Set once a trap has caught this link: cut when that many replies have come from the server. */
  doomed: { atReply: number; sprung: () => void } | undefined;

  constructor(
    readonly client: Socket,
    readonly server: Socket,
  ) {}

  cut(): void {
    for (const socket of [this.client, this.server]) if (!socket.destroyed) socket.resetAndDestroy();
  }
}

class FaultyProxy implements Proxy {
  readonly host = '127.0.0.1';
  private readonly links = new Set<Link>();
  private readonly traps = new Set<Trap>();
  private readonly acceptor: Server = createServer((client) => this.accept(client));
  private delayMs = 0;
  private slicing = false;
  private holding = false;
  private refusing = false;

  constructor(private targetPort: number) {}

  async listen(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.acceptor.once('error', reject);
      this.acceptor.listen(0, this.host, resolve);
    });
    this.acceptor.unref();
  }

  get port(): number {
    return (this.acceptor.address() as AddressInfo).port;
  }

  get url(): string {
    return `redis://${this.host}:${this.port}`;
  }

  get connectionCount(): number {
    return this.links.size;
  }

  retarget(port: number): void {
    this.targetPort = port;
  }

  delay(ms: number): void {
    this.delayMs = ms;
  }

  slice(on: boolean): void {
    this.slicing = on;
  }

  blackHole(on: boolean): void {
    this.holding = on;
  }

  cut(): void {
    for (const link of this.links) link.cut();
  }

  refuse(on: boolean): void {
    this.refusing = on;
    if (on) this.cut();
  }

  loseReplies({ count = 1, when = () => true }: LoseRepliesOptions = {}): Promise<void> {
    return new Promise((sprung) => {
      this.traps.add({ count, when, sprung });
    });
  }

  heal(): void {
    this.delayMs = 0;
    this.slicing = this.holding = this.refusing = false;
    this.traps.clear();
  }

  async stop(): Promise<void> {
    this.cut();
    await new Promise<void>((resolve) => {
      this.acceptor.close(() => resolve());
    });
  }

  private accept(client: Socket): void {
    if (this.refusing) {
      client.resetAndDestroy();
      return;
    }
    const server = connect({ host: this.host, port: this.targetPort, noDelay: true });
    client.setNoDelay(true);
    const link = new Link(client, server);
    this.links.add(link);
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      socket.on('error', () => link.cut());
      socket.on('close', () => {
        other.end();
        this.links.delete(link);
      });
    }
    this.carry(client, server, (chunk) => this.passRequest(link, chunk));
    this.carry(server, client, (chunk) => this.passReply(link, chunk));
  }

  /** Moves bytes from one socket to the other in order, late if there is a delay, with back-pressure. */
  private carry(from: Socket, to: Socket, passes: (chunk: Buffer) => boolean): void {
    // One queue and one timer: with a timer for each chunk, two that are due within a millisecond could change places.
    const late: { chunk: Buffer; dueMs: number }[] = [];
    const deliver = (chunk: Buffer): void => {
      if (to.destroyed || !passes(chunk)) return;
      if (to.writable && !to.write(chunk)) {
        from.pause();
        to.once('drain', () => from.resume());
      }
    };
    const deliverDue = (): void => {
      while (late.length > 0 && late[0]!.dueMs <= performance.now()) deliver(late.shift()!.chunk);
      if (late.length > 0) setTimeout(deliverDue, late[0]!.dueMs - performance.now());
    };
    from.on('data', (chunk: Buffer) => {
      if (late.length === 0 && this.delayMs === 0) {
        deliver(chunk);
        return;
      }
      late.push({ chunk, dueMs: performance.now() + this.delayMs });
      if (late.length === 1) setTimeout(deliverDue, this.delayMs);
    });
    from.on('end', () => to.end());
  }

  private passRequest(link: Link, chunk: Buffer): boolean {
    if (this.holding) return false;
    const sentBefore = link.requests.total;
    link.requests.read(chunk);
    const trap = link.doomed ? undefined : [...this.traps].find(({ when }) => when(chunk));
    if (trap) {
      this.traps.delete(trap);
      // Replies to earlier requests may still be under way. They must not be taken for this one's: the
      // connection would be cut before the server has read the request, and nothing would have happened.
      link.doomed = { atReply: sentBefore + trap.count, sprung: trap.sprung };
    }
    return true;
  }

  private passReply(link: Link, chunk: Buffer): boolean {
    if (this.holding) return false;
    link.replies.read(chunk);
    if (link.doomed) {
      if (link.replies.total >= link.doomed.atReply) {
        link.cut();
        link.doomed.sprung();
      }
      return false;
    }
    if (!this.slicing) return true;
    for (const byte of chunk) link.client.write(Uint8Array.of(byte));
    return false;
  }
}
