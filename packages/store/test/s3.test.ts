/** The S3 store keeps the contract of all stores, on a real S3 server. */
import { after, before } from 'node:test';
import { startVersitygw, versitygwProblem, type Versitygw } from '@sluice/testbed';
import { S3Store } from '../src/index.js';
import { conforms } from './conformance.js';

const problem = versitygwProblem();
let server: Versitygw | undefined;
let store: S3Store | undefined;

before(async () => {
  if (problem !== undefined) return;
  server = await startVersitygw();
  store = new S3Store({
    endpoint: server.endpoint,
    region: server.region,
    bucket: server.bucket,
    credentials: { accessKeyId: server.accessKey, secretAccessKey: server.secretKey },
  });
});
after(async () => {
  store?.close();
  await server?.stop();
});

conforms('S3', { store: () => store!, problem, anyKey: false });
