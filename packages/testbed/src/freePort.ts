/**
 * Picks a TCP port on the loopback interface that nobody listens on.
 *
 * Ports come from below the range the kernel gives to outgoing connections. A port from that range could be
 * taken by any client while its server is down, and a client that dials it can even connect to itself. Two
 * processes may still pick the same port at the same moment: whoever starts a server retries with another one.
 */
import { createServer } from 'node:net';

const LOWEST_PORT = 12_000;
const PORT_COUNT = 20_000;
const MAX_TRIES = 200;

export async function freePort(): Promise<number> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const port = LOWEST_PORT + Math.floor(Math.random() * PORT_COUNT);
    if (await canListen(port)) return port;
  }
  throw new Error(`no free port found in ${MAX_TRIES} tries`);
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
