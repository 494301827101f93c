-- 0005-conditions: a file is replaced or removed only while it is the one that was asked for. The condition is checked where the node
-- is locked: before the bytes of an upload come, for a quick refusal, and again in the transaction that makes it the file.

ALTER TABLE uploads ADD COLUMN if_match text[];

CREATE FUNCTION sluice_texts(list jsonb) RETURNS text[] LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN ARRAY(SELECT jsonb_array_elements_text(list));
END $$;

-- `wanted` are ETags without quotation marks, as some stores write them; `*` is any file that was ever ACTIVE.
CREATE FUNCTION sluice_match(node nodes, wanted text[], node_path text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF coalesce(node.type = 'FILE' AND node.version > 0 AND ('*' = ANY (wanted) OR btrim(node.etag, '"') = ANY (wanted)), false) THEN
    RETURN;
  END IF;
  PERFORM sluice_refuse('PRECONDITION_FAILED', jsonb_build_object('path', node_path));
END $$;

-- As before, with the condition.
CREATE OR REPLACE FUNCTION sluice_draft(p jsonb, drive drives) RETURNS uploads LANGUAGE plpgsql AS $$
DECLARE
  upload uploads;
  node nodes;
  folder nodes;
  named nodes;
BEGIN
  upload.path := p->>'path';
  IF upload.path IS NULL THEN
    upload.path := p->>'name';
    IF p->>'parentId' IS NOT NULL THEN
      SELECT * INTO folder FROM nodes WHERE id = (p->>'parentId')::uuid AND drive_id = drive.id;
      IF NOT FOUND THEN PERFORM sluice_refuse('NODE_NOT_FOUND', jsonb_build_object('node', p->'parentId')); END IF;
      IF folder.type <> 'FOLDER' THEN PERFORM sluice_refuse('NOT_A_FOLDER', jsonb_build_object('path', folder.path)); END IF;
      upload.path := folder.path || '/' || upload.path;
    END IF;
  END IF;
  IF octet_length(upload.path) > 1024 THEN
    PERFORM sluice_refuse('PATH_TOO_LONG', jsonb_build_object('bytes', octet_length(upload.path), 'limit', 1024));
  END IF;
  SELECT * INTO node FROM nodes WHERE drive_id = drive.id AND path = upload.path FOR UPDATE;
  IF node.type = 'FOLDER' OR (node.version > 0 AND p->>'ifExists' = 'fail') THEN
    PERFORM sluice_refuse('NODE_EXISTS', jsonb_build_object('path', upload.path, 'node', node.id));
  END IF;
  IF p->'ifMatch' IS NOT NULL THEN PERFORM sluice_match(node, sluice_texts(p->'ifMatch'), upload.path); END IF;
  IF p->>'clientNodeId' IS NOT NULL THEN
    SELECT * INTO named FROM nodes
      WHERE drive_id = drive.id AND client_node_id = p->>'clientNodeId' AND client_node_id IS NOT NULL;
    IF named.id IS DISTINCT FROM node.id AND named.id IS NOT NULL THEN
      PERFORM sluice_refuse('NODE_EXISTS', jsonb_build_object('path', named.path, 'node', named.id));
    END IF;
  END IF;
  -- In the order of the table's columns. One statement, because each assignment would cost as much as all of it.
  SELECT p->>'id', drive.tenant, p->>'owner', drive.id, coalesce(node.id, gen_random_uuid()), upload.path, p->>'objectKey', 'OPEN',
    p->>'ifExists', 0, (p->>'declaredSize')::bigint, p->>'contentType', p->>'declaredSha256', coalesce(p->'metadata', '{}'),
    p->>'clientNodeId', p->>'idempotencyKey', p->>'requestDigest', coalesce(node.version, 0) > 0,
    CASE WHEN node.version > 0 THEN node.version END, 0, clock_timestamp()
  INTO upload;
  IF p->'ifMatch' IS NOT NULL THEN upload.if_match := sluice_texts(p->'ifMatch'); END IF;
  RETURN upload;
END $$;

CREATE OR REPLACE FUNCTION sluice_fill(upload uploads, drive drives, p jsonb) RETURNS uploads LANGUAGE plpgsql AS $$
DECLARE
  before nodes;
  node nodes;
  is_new boolean;
BEGIN
  SELECT * INTO before FROM nodes WHERE id = upload.node_id FOR UPDATE;
  IF NOT FOUND THEN
    SELECT * INTO before FROM nodes WHERE drive_id = drive.id AND path = upload.path FOR UPDATE;
  END IF;
  IF before.type = 'FOLDER' OR (before.version > 0 AND upload.if_exists = 'fail') THEN
    PERFORM sluice_refuse('NODE_EXISTS', jsonb_build_object('path', before.path, 'node', before.id));
  END IF;
  IF upload.if_match IS NOT NULL THEN PERFORM sluice_match(before, upload.if_match, upload.path); END IF;
  IF before.id IS NULL THEN
    INSERT INTO nodes (id, tenant, owner, drive_id, parent_id, type, name, path, content_type, size, object_key, etag, sha256,
      crc64, status, metadata, client_node_id, version)
    VALUES (upload.node_id, drive.tenant, upload.owner, drive.id,
      sluice_folder(drive, upload.owner, sluice_parent_path(upload.path)), 'FILE', sluice_base_name(upload.path), upload.path,
      p->>'contentType', (p->>'size')::bigint, upload.object_key, p->>'etag', p->>'sha256', p->>'crc64', 'ACTIVE',
      upload.metadata, upload.client_node_id, upload.base_version + 1)
    RETURNING * INTO node;
  ELSE
    UPDATE nodes SET
      content_type = p->>'contentType', size = (p->>'size')::bigint, object_key = upload.object_key, etag = p->>'etag',
      sha256 = p->>'sha256', crc64 = p->>'crc64', status = 'ACTIVE', metadata = upload.metadata,
      client_node_id = coalesce(upload.client_node_id, client_node_id), version = version + 1, updated_at = clock_timestamp()
    WHERE id = before.id
    RETURNING * INTO node;
  END IF;
  is_new := coalesce(before.version, 0) = 0;
  IF before.object_key <> node.object_key THEN PERFORM sluice_doom(drive, before.object_key); END IF;
  PERFORM sluice_use(drive.tenant,
    node.size - CASE WHEN is_new THEN 0 ELSE before.size END, CASE WHEN is_new THEN 1 ELSE 0 END);
  upload.status := 'COMPLETED';
  upload.fence := coalesce((p->>'fence')::bigint, 0);
  upload.node_id := node.id;
  upload.ended_at := clock_timestamp();
  upload.result := jsonb_strip_nulls(jsonb_build_object(
    'nodeId', node.id, 'path', node.path, 'version', node.version, 'isUpdate', NOT is_new, 'size', node.size,
    'etag', node.etag, 'sha256', node.sha256, 'crc64', node.crc64, 'contentType', node.content_type,
    'objectKey', node.object_key));
  RETURN upload;
END $$;

CREATE OR REPLACE FUNCTION sluice_delete(p jsonb) RETURNS jsonb LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  top nodes;
  gone nodes;
  drive drives;
  ids uuid[];
  below bigint;
  removed bigint := 0;
  keys text[] := '{}';
  bytes bigint := 0;
  files bigint := 0;
BEGIN
  SELECT * INTO top FROM nodes WHERE id = (p->>'id')::uuid AND tenant = p->>'tenant';
  IF NOT FOUND THEN RETURN jsonb_build_object('deleted', 0, 'objectKeys', '[]'::jsonb); END IF;
  PERFORM sluice_lock_drive(top.drive_id, top.type = 'FOLDER');
  SELECT * INTO drive FROM drives WHERE id = top.drive_id;
  ids := ARRAY[top.id];
  IF top.type = 'FOLDER' THEN
    -- It may have been moved or removed while we waited for the drive.
    SELECT * INTO top FROM nodes WHERE id = top.id;
    IF NOT FOUND THEN RETURN jsonb_build_object('deleted', 0, 'objectKeys', '[]'::jsonb); END IF;
    SELECT array_agg(id) INTO ids FROM (
      SELECT id FROM nodes WHERE drive_id = top.drive_id AND path >= top.path || '/' AND path < top.path || '0'
      LIMIT (p->>'limit')::bigint + 1) inside;
    below := coalesce(cardinality(ids), 0);
    IF below > 0 AND NOT (p->>'recursive')::boolean THEN
      PERFORM sluice_refuse('FOLDER_NOT_EMPTY', jsonb_build_object('path', top.path));
    END IF;
    IF below > (p->>'limit')::bigint THEN
      PERFORM sluice_refuse('FOLDER_TOO_LARGE', jsonb_build_object('path', top.path, 'limit', p->'limit'));
    END IF;
    ids := coalesce(ids, '{}') || top.id;
  END IF;
  PERFORM 1 FROM uploads WHERE status = 'OPEN' AND node_id = ANY (ids) ORDER BY id FOR UPDATE;
  IF p->'ifMatch' IS NOT NULL THEN
    SELECT * INTO gone FROM nodes WHERE id = top.id FOR UPDATE;
    PERFORM sluice_match(gone, sluice_texts(p->'ifMatch'), top.path);
  END IF;
  FOR gone IN DELETE FROM nodes WHERE id = ANY (ids) RETURNING * LOOP
    removed := removed + 1;
    UPDATE uploads SET base_version = gone.version WHERE status = 'OPEN' AND node_id = gone.id;
    IF gone.type = 'FILE' AND gone.version > 0 THEN
      bytes := bytes + gone.size;
      files := files + 1;
      keys := keys || gone.object_key;
      PERFORM sluice_doom(drive, gone.object_key);
    END IF;
    IF gone.version > 0 AND (gone.type = 'FILE' OR gone.id = top.id) THEN
      PERFORM sluice_emit(gone.id::text || ':' || gone.version || ':deleted', 'repository.documents.deleted', gone.id,
        sluice_describe(gone, drive.name));
    END IF;
  END LOOP;
  IF files > 0 THEN PERFORM sluice_use(drive.tenant, -bytes, -files); END IF;
  RETURN jsonb_build_object('deleted', removed, 'objectKeys', to_jsonb(keys));
END $$;
