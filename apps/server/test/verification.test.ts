/** Verification results as a service meets them at `npm start`: its key, a kill right after the answer, and the event. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readEvents } from '@sluice/events';
import { RedisLink } from '@sluice/redis';
import { waitUntil } from '@sluice/testbed';
import { newDataDir, startServer } from './serverProcess.js';

const ENV = { SLUICE_ROLES: 'queues,api,uploads,relay', SLUICE_SERVICE_KEYS: 'service-key-01234567' };

test('a result survives a kill right after its answer, is delivered again, and its event is told once', async () => {
  const dataDir = newDataDir();
  const first = await startServer(dataDir, ENV);
  const put = await fetch(`${first.url}/v1/files/main/a.txt`, { method: 'PUT', body: 'a' });
  const { nodeId } = (await put.json()) as { nodeId: string };
  const report = async (url: string) =>
    fetch(`${url}/internal/verification/result`, {
      method: 'POST',
      headers: { 'X-Service-Key': 'service-key-01234567', 'Content-Type': 'application/json' },
      body: JSON.stringify({ documentId: nodeId, resultId: 'r1', verificationResult: 'approved' }),
    });
  const answer = await report(first.url);
  assert.equal(answer.status, 200);
  const said = await answer.text();
  await first.end('SIGKILL');

  const second = await startServer(dataDir, ENV);
  assert.equal(await (await report(second.url)).text(), said);
  const node = (await (await fetch(`${second.url}/v1/nodes/${nodeId}`)).json()) as {
    verification: { result: string };
  };
  assert.equal(node.verification.result, 'approved');
  const link = new RedisLink(second.redisUrl);
  const told = async () =>
    (await readEvents({ redis: link, limit: 1_000 })).filter(
      ({ topic }) => topic === 'repository.documents.verified',
    );
  await waitUntil('the event is told', async () => (await told()).length > 0, { timeoutMs: 20_000 });
  assert.deepEqual(
    (await told()).map(({ eventId }) => eventId),
    ['result:r1:verified'],
  );
  link.close();
  assert.ok(!second.output().includes('service-key'));
  await second.end('SIGTERM');
});
