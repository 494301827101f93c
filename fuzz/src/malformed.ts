// Requests that are no HTTP, or barely: what a parser meets before any route does. The server must answer with 4xx or hang up, and go on.
import type { Random } from '@sluice/testbed/random';

export function malformed(random: Random, key: string): string {
  const head = `Host: localhost\r\nAuthorization: ${key}\r\n`;
  const requests = [
    'GET\r\n\r\n',
    'GET / HTTP/9.9\r\n\r\n',
    `FOO /v1/drives HTTP/1.1\r\n${head}\r\n`,
    `GET /v1/drives\u0000 HTTP/1.1\r\n${head}\r\n`,
    `GET /v1/dri ves HTTP/1.1\r\n${head}\r\n`,
    `GET http://evil.invalid/v1/drives HTTP/1.1\r\n${head}\r\n`,
    `GET * HTTP/1.1\r\n${head}\r\n`,
    `GET /v1/drives HTTP/1.1\r\n${head}X: a\u0000b\r\n\r\n`,
    `GET /v1/drives HTTP/1.1\r\n${head}Host: other\r\nHost: third\r\n\r\n`,
    `GET /v1/drives HTTP/1.1\r\n${head}${'X-Many: 1\r\n'.repeat(3_000)}\r\n`,
    `GET /v1/${'a'.repeat(100_000)} HTTP/1.1\r\n${head}\r\n`,
    `POST /v1/uploads HTTP/1.1\r\n${head}Content-Type: application/json\r\nContent-Length: -1\r\n\r\n{}`,
    `POST /v1/uploads HTTP/1.1\r\n${head}Content-Type: application/json\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n{}{}{}`,
    `POST /v1/uploads HTTP/1.1\r\n${head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n`,
    `POST /v1/uploads HTTP/1.1\r\n${head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n`,
    `POST /v1/uploads HTTP/1.1\r\n${head}Content-Type: application/json\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    `PUT /v1/files/main/short HTTP/1.1\r\n${head}Content-Length: 1000\r\n\r\nnot a thousand`,
    `PUT /v1/files/main/cut HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\n5\r\nhel`,
    `PUT /v1/files/main/wait HTTP/1.1\r\n${head}Expect: 200-ok\r\nContent-Length: 1\r\n\r\nx`,
    `GET /v1/drives HTTP/1.1\r\n${head}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    `GET /v1/drives HTTP/1.0\r\n\r\n`,
    `GET /v1/drives HTTP/1.1\r\n${head}\r\nGET /v1/drives HTTP/1.1\r\n${head}\r\n`,
    '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003',
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  ];
  return random.pick(requests);
}
