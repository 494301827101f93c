-- Several small files in one transaction: what a transaction costs is paid once for all of them. They are of one drive, and come in the
-- order of their paths, so that two who store the same files wait for each other and never both. If one is refused, none is stored, and
-- none waits long for a lock that somebody holds on another.
CREATE FUNCTION sluice_store_together(p jsonb) RETURNS jsonb LANGUAGE plpgsql
SET enable_seqscan = off SET lock_timeout = '250ms' AS $$
DECLARE
  file jsonb;
  answers jsonb := '[]';
BEGIN
  -- Usage comes last in the order of locks: what all of them use is added up until then.
  PERFORM set_config('sluice.uses', '0 0', true);
  FOR file IN SELECT value FROM jsonb_array_elements(p->'files') LOOP
    -- Each tells only of the folders that it has made itself.
    PERFORM set_config('sluice.made', '', true);
    answers := answers || jsonb_build_array(sluice_store_whole(file));
  END LOOP;
  PERFORM sluice_use_all(p->'files'->0->>'tenant');
  RETURN answers;
END $$;

-- The shard follows the connection: connections that work at the same time seldom meet in one row. Within a transaction of many files
-- it is only noted.
CREATE OR REPLACE FUNCTION sluice_use(of_tenant text, more_bytes bigint, more_files bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  uses text := current_setting('sluice.uses', true);
BEGIN
  IF uses <> '' THEN
    PERFORM set_config('sluice.uses',
      split_part(uses, ' ', 1)::bigint + more_bytes || ' ' || split_part(uses, ' ', 2)::bigint + more_files, true);
    RETURN;
  END IF;
  INSERT INTO usage AS known (tenant, shard, bytes, files)
  VALUES (of_tenant, pg_backend_pid() % 16, more_bytes, more_files)
  ON CONFLICT (tenant, shard) DO UPDATE
    SET bytes = known.bytes + excluded.bytes, files = known.files + excluded.files;
END $$;

CREATE FUNCTION sluice_use_all(of_tenant text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  uses text := current_setting('sluice.uses', true);
BEGIN
  PERFORM set_config('sluice.uses', '', true);
  PERFORM sluice_use(of_tenant, split_part(uses, ' ', 1)::bigint, split_part(uses, ' ', 2)::bigint);
END $$;

-- The first answer to a request that comes again: NULL if it is new. One that was buried has no digest to compare: whoever comes late
-- with it learns that it has ended.
CREATE OR REPLACE FUNCTION sluice_replay(p jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  upload uploads;
  node nodes;
BEGIN
  SELECT * INTO upload FROM uploads WHERE id = p->>'id';
  IF NOT FOUND AND p->>'idempotencyKey' IS NOT NULL THEN
    SELECT * INTO upload FROM uploads
      WHERE tenant = p->>'tenant' AND idempotency_key = p->>'idempotencyKey';
  END IF;
  IF upload.id IS NULL THEN RETURN NULL; END IF;
  IF upload.tenant <> p->>'tenant' OR (upload.request_digest IS DISTINCT FROM p->>'requestDigest'
    AND NOT (upload.status = 'EXPIRED' AND upload.request_digest IS NULL)) THEN
    PERFORM sluice_refuse('IDEMPOTENCY_CONFLICT', jsonb_build_object('key', coalesce(p->>'idempotencyKey', p->>'id')));
  END IF;
  SELECT * INTO node FROM nodes WHERE id = upload.node_id;
  RETURN jsonb_build_object(
    'upload', to_jsonb(upload), 'node', CASE WHEN node.id IS NULL THEN NULL ELSE to_jsonb(node) END,
    'replayed', true
  );
END $$;
