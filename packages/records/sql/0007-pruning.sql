-- 0007-pruning: uploads that ended long ago are removed, oldest first. Their files and events are elsewhere; what goes with them is the
-- memory of their idempotency keys and of how they ended.

CREATE INDEX uploads_ended ON uploads (ended_at) WHERE status <> 'OPEN';
