/** A way to PostgreSQL on which one reply can be lost: the request arrives, the answer does not, the connection is cut. */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface LossyProxy {
  readonly port: number;
  /** How many replies were lost so far. */
  readonly lost: number;
  /** The next request that contains this text gets no reply; `onLost` is called before anybody can notice. */
  loseReplyTo(text: string, onLost?: () => void): void;
  stop(): Promise<void>;
}

export async function startLossyProxy(targetPort: number): Promise<LossyProxy> {
  let wanted: string | undefined;
  let lost = 0;
  let told = (): void => {};
  const sockets = new Set<Socket>();
  const acceptor = createServer((client) => {
    const server = connect(targetPort, '127.0.0.1');
    let doomed = false;
    const cut = (): void => {
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.on('error', cut);
      socket.on('close', cut);
    }
    client.on('data', (chunk: Buffer) => {
      if (wanted !== undefined && chunk.includes(wanted)) {
        wanted = undefined;
        doomed = true;
      }
      server.write(chunk);
    });
    let tail = Buffer.alloc(0);
    server.on('data', (chunk: Buffer) => {
      if (!doomed) {
        client.write(chunk);
        return;
      }
      // A transaction is over when the server is ready for the next: Z, its length of five, and I for idle.
      tail = Buffer.concat([tail, chunk]);
      if (!tail.includes(Buffer.from('Z\0\0\0\x05I'))) return;
      lost += 1;
      told();
      cut();
    });
  });
  await new Promise<void>((resolve) => {
    acceptor.listen(0, '127.0.0.1', resolve);
  });
  return {
    port: (acceptor.address() as AddressInfo).port,
    get lost() {
      return lost;
    },
    loseReplyTo: (text, onLost = () => {}) => {
      wanted = text;
      told = onLost;
    },
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => {
        acceptor.close(() => resolve());
      });
    },
  };
}
