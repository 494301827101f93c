/** Fills an outbox with numbered events of many nodes, and checks that what came out is all of it, in order for each node. */
import assert from 'node:assert/strict';
import type { PostgresServer } from '@sluice/testbed';
import type { SinkEvent } from '../src/index.js';

const NODES = 100;

/** Event n belongs to node n modulo 100 and is number n. */
export async function fillOutbox(server: PostgresServer, url: string, count: number): Promise<void> {
  const sql = `INSERT INTO outbox (event_id, topic, node_id, payload)
    SELECT 'event-' || n, 'repository.documents.updated', ('00000000-0000-4000-8000-' || lpad((n % ${NODES})::text, 12, '0'))::uuid,
      jsonb_build_object('n', n)
    FROM generate_series(1, ${count}) n ORDER BY n`;
  await server.query(sql, [], url);
}

/** Repetitions are allowed, as long as they carry the same id: they are left out first. */
export function assertComplete(events: readonly SinkEvent[], count: number): void {
  const seen = new Set<string>();
  const last = new Map<string, number>();
  for (const { eventId, key, value } of events) {
    if (seen.has(eventId)) continue;
    seen.add(eventId);
    const { n } = JSON.parse(value) as { n: number };
    assert.equal(eventId, `event-${n}`);
    assert.ok(n > (last.get(key) ?? 0), `event ${n} of node ${key} came too late`);
    last.set(key, n);
  }
  assert.equal(seen.size, count);
}
