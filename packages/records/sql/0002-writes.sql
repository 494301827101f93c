-- 0002-writes: everything that changes more than one row.
--
-- A write is one function call: one round trip and one transaction, so that no connection waits inside a transaction for a
-- client that may have died, and a call whose reply was lost is simply made again. A function that finds something wrong
-- raises; nothing of what it did then stays. The SQLSTATE is SLUIC, the message is an error code of the package, and the
-- detail is a JSON object with the error's details. SLAGN asks for another attempt: somebody else was first. A unique
-- index that objects means the same (two made one node or one upload at the same moment, and the next attempt finds it);
-- catching that here would cost each call a subtransaction.
--
-- All of them are PL/pgSQL, which keeps its plans for the life of a connection. Plans that were made while a table was empty
-- would read it from end to end for as long as they are kept; so the entry points forbid that where there is an index.
-- PL/pgSQL prepares each expression anew in each transaction: on the way of a small file there are few of them.
--
-- Order of locks, everywhere: tenant (only with limits), drive, upload, node, usage.

CREATE FUNCTION sluice_refuse(code text, details jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'SLUIC', MESSAGE = code, DETAIL = details::text;
END $$;

-- 5321 and 5322 are the classes of Sluice's advisory locks. Two drives with the same hash only wait for each other.
CREATE FUNCTION sluice_lock_tenant(tenant text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(5321, hashtext(tenant));
END $$;

CREATE FUNCTION sluice_lock_drive(drive_id uuid, alone boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF alone THEN
    PERFORM pg_advisory_xact_lock(5322, hashtext(drive_id::text));
  ELSE
    PERFORM pg_advisory_xact_lock_shared(5322, hashtext(drive_id::text));
  END IF;
END $$;

-- The drive by name, locked against moves and removals of its folders, and against its own removal.
CREATE FUNCTION sluice_drive(of_tenant text, drive_name text) RETURNS drives LANGUAGE plpgsql AS $$
DECLARE
  drive drives;
BEGIN
  SELECT * INTO drive FROM drives WHERE tenant = of_tenant AND name = drive_name;
  IF FOUND THEN
    PERFORM sluice_lock_drive(drive.id, false);
    -- It may have been removed while we waited.
    SELECT * INTO drive FROM drives WHERE id = drive.id;
  END IF;
  IF drive.id IS NULL THEN
    PERFORM sluice_refuse('DRIVE_NOT_FOUND', jsonb_build_object('drive', drive_name));
  END IF;
  RETURN drive;
END $$;

CREATE FUNCTION sluice_now() RETURNS text LANGUAGE sql AS $$
  SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
$$;

CREATE FUNCTION sluice_emit(id text, of_topic text, of_node uuid, body jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO outbox (event_id, topic, node_id, payload)
  VALUES (id, of_topic, of_node, body || jsonb_build_object(
    'eventId', id,
    'type', of_topic,
    'nodeId', of_node,
    'occurredAt', sluice_now()
  ));
END $$;

-- What an event says about a node. Absent facts are left out.
CREATE FUNCTION sluice_describe(node nodes, drive_name text) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
  RETURN jsonb_strip_nulls(jsonb_build_object(
    'tenant', node.tenant, 'drive', drive_name, 'path', node.path, 'nodeType', node.type, 'size', node.size,
    'etag', node.etag, 'sha256', node.sha256, 'contentType', node.content_type, 'version', node.version
  ));
END $$;

-- The shard follows the connection: connections that work at the same time seldom meet in one row.
CREATE FUNCTION sluice_use(of_tenant text, more_bytes bigint, more_files bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO usage AS known (tenant, shard, bytes, files)
  VALUES (of_tenant, pg_backend_pid() % 16, more_bytes, more_files)
  ON CONFLICT (tenant, shard) DO UPDATE
    SET bytes = known.bytes + excluded.bytes, files = known.files + excluded.files;
END $$;

CREATE FUNCTION sluice_doom(drive drives, key text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO doomed_objects (object_key, drive_id, bucket) VALUES (key, drive.id, drive.bucket)
  ON CONFLICT (object_key) DO NOTHING;
END $$;

-- What is directly in a folder is not what it was, and no event of a document says so. For whoever keeps copies of lists.
CREATE FUNCTION sluice_folder_changed(id text, drive drives, folder_path text, of_node uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM sluice_emit(id, 'repository.folders.changed', of_node,
    jsonb_build_object('tenant', drive.tenant, 'drive', drive.name, 'path', folder_path));
END $$;

-- The id of a folder, made with all its parents if it is missing. NULL is the root. The highest folder that had to be made is told in
-- the setting `sluice.made` for the rest of the transaction, and its parent's list in an event; the others have nobody who knew them.
CREATE FUNCTION sluice_folder(drive drives, of_owner text, folder_path text) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
  found_id uuid;
  found_type text;
  parent uuid;
  segments text[];
  so_far text;
  has_made boolean := false;
BEGIN
  IF folder_path = '' THEN RETURN NULL; END IF;
  SELECT id, type INTO found_id, found_type FROM nodes WHERE drive_id = drive.id AND path = folder_path;
  IF found_type = 'FOLDER' THEN RETURN found_id; END IF;
  segments := string_to_array(folder_path, '/');
  FOR depth IN 1 .. cardinality(segments) LOOP
    so_far := array_to_string(segments[1:depth], '/');
    SELECT id, type INTO found_id, found_type FROM nodes WHERE drive_id = drive.id AND path = so_far;
    IF NOT FOUND THEN
      INSERT INTO nodes (id, tenant, owner, drive_id, parent_id, type, name, path, status, version)
      VALUES (gen_random_uuid(), drive.tenant, of_owner, drive.id, parent, 'FOLDER', segments[depth], so_far, 'ACTIVE', 1)
      ON CONFLICT (drive_id, path) DO NOTHING
      RETURNING id, type INTO found_id, found_type;
      IF FOUND THEN
        IF NOT has_made THEN
          has_made := true;
          PERFORM set_config('sluice.made', so_far, true);
          PERFORM sluice_folder_changed(found_id::text || ':made', drive, array_to_string(segments[1:depth - 1], '/'), found_id);
        END IF;
      ELSE
        -- Somebody made it at the same moment; this statement sees it.
        SELECT id, type INTO found_id, found_type FROM nodes WHERE drive_id = drive.id AND path = so_far;
      END IF;
    END IF;
    -- What was there a moment ago may be gone again: a pending file that was cancelled.
    IF found_type IS NULL THEN RAISE EXCEPTION USING ERRCODE = 'SLAGN', MESSAGE = 'a folder changed'; END IF;
    IF found_type <> 'FOLDER' THEN PERFORM sluice_refuse('NOT_A_FOLDER', jsonb_build_object('path', so_far)); END IF;
    parent := found_id;
  END LOOP;
  RETURN parent;
END $$;

-- The first answer to a request that comes again: NULL if it is new.
CREATE FUNCTION sluice_replay(p jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
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
  IF upload.tenant <> p->>'tenant' OR upload.request_digest IS DISTINCT FROM p->>'requestDigest' THEN
    PERFORM sluice_refuse('IDEMPOTENCY_CONFLICT', jsonb_build_object('key', coalesce(p->>'idempotencyKey', p->>'id')));
  END IF;
  SELECT * INTO node FROM nodes WHERE id = upload.node_id;
  RETURN jsonb_build_object(
    'upload', to_jsonb(upload), 'node', CASE WHEN node.id IS NULL THEN NULL ELSE to_jsonb(node) END,
    'replayed', true
  );
END $$;

-- Whether the tenant may take in so many bytes more. Exact, because the tenant's lock is held until the end.
CREATE FUNCTION sluice_admit(of_tenant text, more_bytes bigint, limits jsonb, except_upload text)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  stored bigint;
  opened bigint;
  expected bigint;
BEGIN
  IF more_bytes > (limits->>'maxFileBytes')::bigint THEN
    PERFORM sluice_refuse('FILE_TOO_LARGE', jsonb_build_object('size', more_bytes, 'limit', limits->'maxFileBytes'));
  END IF;
  IF limits->>'maxBytes' IS NULL AND limits->>'maxOpenUploads' IS NULL THEN RETURN; END IF;
  SELECT count(*), coalesce(sum(coalesce(declared_size, claimed_size)), 0) INTO opened, expected
    FROM uploads WHERE tenant = of_tenant AND status = 'OPEN' AND id <> except_upload;
  IF opened >= (limits->>'maxOpenUploads')::bigint THEN
    PERFORM sluice_refuse('TOO_MANY_UPLOADS', jsonb_build_object('open', opened, 'limit', limits->'maxOpenUploads'));
  END IF;
  SELECT coalesce(sum(bytes), 0) INTO stored FROM usage WHERE tenant = of_tenant;
  IF stored + expected + more_bytes > (limits->>'maxBytes')::bigint THEN
    PERFORM sluice_refuse('QUOTA_EXCEEDED', jsonb_build_object(
      'used', stored, 'open', expected, 'size', more_bytes, 'limit', limits->'maxBytes'));
  END IF;
END $$;

-- Sets room for so many bytes of one upload aside, and says for how many there is now. With plenty of room it is a step more than was
-- asked for, so that most chunks need not ask; where it gets narrow it is exact.
CREATE FUNCTION sluice_claim(p jsonb) RETURNS jsonb LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  step constant bigint := 64 * 1024 * 1024;
  plenty constant bigint := 64 * step;
  upload uploads;
  wanted bigint := (p->>'bytes')::bigint;
  most bigint := (p->>'maxBytes')::bigint;
  stored bigint;
  expected bigint;
BEGIN
  PERFORM sluice_lock_tenant((SELECT tenant FROM uploads WHERE id = p->>'id'));
  upload := sluice_lock_upload(p->>'id');
  IF upload.status <> 'OPEN' THEN
    PERFORM sluice_refuse('UPLOAD_ENDED', jsonb_build_object('upload', upload.id, 'status', upload.status));
  END IF;
  IF coalesce(upload.declared_size, upload.claimed_size, 0) >= wanted THEN
    RETURN to_jsonb(coalesce(upload.declared_size, upload.claimed_size, 0));
  END IF;
  SELECT coalesce(sum(coalesce(declared_size, claimed_size)), 0) INTO expected
    FROM uploads WHERE tenant = upload.tenant AND status = 'OPEN' AND id <> upload.id;
  SELECT coalesce(sum(bytes), 0) INTO stored FROM usage WHERE tenant = upload.tenant;
  IF stored + expected + wanted > most THEN
    PERFORM sluice_refuse('QUOTA_EXCEEDED', jsonb_build_object(
      'used', stored, 'open', expected, 'size', wanted, 'limit', most));
  END IF;
  IF most - stored - expected - wanted >= plenty THEN wanted := wanted + step; END IF;
  UPDATE uploads SET claimed_size = wanted WHERE id = upload.id;
  RETURN to_jsonb(wanted);
END $$;

-- Conditions: a file is replaced or removed only while it is the one that was asked for. They are checked where the node is locked: before
-- the bytes of an upload come, for a quick refusal, and again in the transaction that makes it the file.
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

-- Where the upload leads: its folder is made, the node at its path is locked, and everything is checked that can be
-- checked before bytes arrive. The upload is described but not yet written.
CREATE FUNCTION sluice_draft(p jsonb, drive drives) RETURNS uploads LANGUAGE plpgsql AS $$
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

CREATE FUNCTION sluice_parent_path(node_path text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN coalesce(substring(node_path FROM '^(.*)/[^/]*$'), '');
END $$;

CREATE FUNCTION sluice_base_name(node_path text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN substring(node_path FROM '[^/]*$');
END $$;

CREATE FUNCTION sluice_upload_event(upload uploads, drive_name text, what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM sluice_emit(
    upload.id || ':' || what, 'repository.uploads.' || what, upload.node_id,
    jsonb_strip_nulls(jsonb_build_object(
      'uploadId', upload.id, 'tenant', upload.tenant, 'drive', drive_name, 'path', upload.path,
      'size', coalesce(upload.result->'size', to_jsonb(upload.declared_size)), 'etag', upload.result->'etag',
      'sha256', coalesce(upload.result->>'sha256', upload.sha256), 'contentType', upload.content_type,
      'version', upload.result->'version', 'status', upload.status, 'reason', upload.reason
    ))
  );
END $$;

CREATE FUNCTION sluice_begin(p jsonb) RETURNS jsonb LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  answer jsonb;
  drive drives;
  upload uploads;
  node nodes;
BEGIN
  IF p->'limits' IS NOT NULL THEN PERFORM sluice_lock_tenant(p->>'tenant'); END IF;
  answer := sluice_replay(p);
  IF answer IS NOT NULL THEN RETURN answer; END IF;
  drive := sluice_drive(p->>'tenant', p->>'drive');
  IF p->'limits' IS NOT NULL THEN
    PERFORM sluice_admit(drive.tenant, coalesce((p->>'declaredSize')::bigint, 0), p->'limits', p->>'id');
  END IF;
  upload := sluice_draft(p, drive);
  UPDATE nodes SET status = 'PENDING', updated_at = clock_timestamp()
    WHERE id = upload.node_id AND status = 'FAILED' AND version = 0;
  SELECT * INTO node FROM nodes WHERE id = upload.node_id;
  IF NOT FOUND THEN
    INSERT INTO nodes (id, tenant, owner, drive_id, parent_id, type, name, path, content_type, size, status, metadata,
      client_node_id)
    VALUES (upload.node_id, drive.tenant, upload.owner, drive.id,
      sluice_folder(drive, upload.owner, sluice_parent_path(upload.path)), 'FILE', sluice_base_name(upload.path), upload.path,
      upload.content_type, upload.declared_size, 'PENDING', upload.metadata, upload.client_node_id)
    RETURNING * INTO node;
  END IF;
  INSERT INTO uploads VALUES (upload.*);
  PERFORM sluice_upload_event(upload, drive.name, 'initiated');
  RETURN jsonb_build_object('upload', to_jsonb(upload), 'node', to_jsonb(node), 'replayed', false,
    'made', current_setting('sluice.made', true));
END $$;

-- The object is there and was verified: the node takes it over. Finds the node, or makes it again at its path if
-- somebody deleted it in between. Returns the upload as it is when it is over, not yet written.
CREATE FUNCTION sluice_fill(upload uploads, drive drives, p jsonb) RETURNS uploads LANGUAGE plpgsql AS $$
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

-- What a completed upload has to tell, in one statement. An upload that is stored as a whole has not told that it began.
CREATE FUNCTION sluice_completion_events(upload uploads, node nodes, drive_name text, as_whole boolean)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  what text := CASE WHEN (upload.result->>'isUpdate')::boolean THEN 'updated' ELSE 'created' END;
  body jsonb := sluice_describe(node, drive_name) || jsonb_build_object('uploadId', upload.id, 'nodeId', node.id,
    'occurredAt', sluice_now());
BEGIN
  INSERT INTO outbox (event_id, topic, node_id, payload)
  SELECT event.id, event.topic, node.id, body || jsonb_build_object('eventId', event.id, 'type', event.topic)
  FROM (VALUES
    (1, upload.id || ':initiated', 'repository.uploads.initiated'),
    (2, upload.id || ':completed', 'repository.uploads.completed'),
    (3, node.id::text || ':' || node.version || ':' || what, 'repository.documents.' || what)
  ) event (number, id, topic)
  WHERE event.number > 1 OR as_whole
  ORDER BY event.number;
END $$;

-- What was announced must be what came.
CREATE FUNCTION sluice_compare(upload uploads, p jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF upload.declared_size <> (p->>'size')::bigint THEN
    PERFORM sluice_refuse('SIZE_MISMATCH', jsonb_build_object('declared', upload.declared_size, 'size', p->'size'));
  END IF;
  IF upload.sha256 <> p->>'sha256' THEN
    PERFORM sluice_refuse('DIGEST_MISMATCH', jsonb_build_object('declared', upload.sha256, 'sha256', p->'sha256'));
  END IF;
END $$;

-- An upload by id, locked in the order of locks.
CREATE FUNCTION sluice_lock_upload(upload_id text) RETURNS uploads LANGUAGE plpgsql AS $$
DECLARE
  upload uploads;
BEGIN
  SELECT * INTO upload FROM uploads WHERE id = upload_id;
  IF NOT FOUND THEN PERFORM sluice_refuse('UPLOAD_NOT_FOUND', jsonb_build_object('upload', upload_id)); END IF;
  PERFORM sluice_lock_drive(upload.drive_id, false);
  SELECT * INTO upload FROM uploads WHERE id = upload_id FOR UPDATE;
  RETURN upload;
END $$;

CREATE FUNCTION sluice_activate(p jsonb) RETURNS jsonb LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  upload uploads;
  drive drives;
  node nodes;
BEGIN
  IF p->'limits' IS NOT NULL THEN PERFORM sluice_lock_tenant((SELECT tenant FROM uploads WHERE id = p->>'id')); END IF;
  upload := sluice_lock_upload(p->>'id');
  SELECT * INTO drive FROM drives WHERE id = upload.drive_id;
  IF upload.status = 'COMPLETED' THEN
    SELECT * INTO node FROM nodes WHERE id = upload.node_id;
    RETURN jsonb_build_object('upload', to_jsonb(upload),
      'node', CASE WHEN node.id IS NULL THEN NULL ELSE to_jsonb(node) END, 'replayed', true);
  END IF;
  IF upload.status <> 'OPEN' THEN
    PERFORM sluice_refuse('UPLOAD_ENDED', jsonb_build_object('upload', upload.id, 'status', upload.status));
  END IF;
  IF (p->>'fence')::bigint < upload.fence THEN
    PERFORM sluice_refuse('UPLOAD_FENCED', jsonb_build_object('upload', upload.id, 'fence', p->'fence', 'known', upload.fence));
  END IF;
  PERFORM sluice_compare(upload, p);
  IF p->'limits' IS NOT NULL THEN
    PERFORM sluice_admit(upload.tenant, (p->>'size')::bigint, (p->'limits') - 'maxOpenUploads', upload.id);
  END IF;
  -- A file of one part is written under a key of its own by every attempt; the one that counts is known only now.
  upload.object_key := coalesce(p->>'objectKey', upload.object_key);
  upload := sluice_fill(upload, drive, p);
  UPDATE uploads SET status = upload.status, fence = upload.fence, node_id = upload.node_id, ended_at = upload.ended_at,
    object_key = upload.object_key, result = upload.result WHERE id = upload.id;
  SELECT * INTO node FROM nodes WHERE id = upload.node_id;
  PERFORM sluice_completion_events(upload, node, drive.name, false);
  RETURN jsonb_build_object('upload', to_jsonb(upload), 'node', to_jsonb(node), 'replayed', false,
    'made', current_setting('sluice.made', true));
END $$;

-- Begin and activate at once, for a file whose object is already stored. The rows are written once, in their last state.
CREATE FUNCTION sluice_store_whole(p jsonb) RETURNS jsonb LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  answer jsonb;
  drive drives;
  upload uploads;
  node nodes;
BEGIN
  IF p->'limits' IS NOT NULL THEN PERFORM sluice_lock_tenant(p->>'tenant'); END IF;
  answer := sluice_replay(p);
  IF answer IS NOT NULL THEN RETURN sluice_replay_whole(answer, p); END IF;
  drive := sluice_drive(p->>'tenant', p->>'drive');
  IF p->'limits' IS NOT NULL THEN
    PERFORM sluice_admit(drive.tenant, (p->>'size')::bigint, p->'limits', p->>'id');
  END IF;
  upload := sluice_draft(p, drive);
  PERFORM sluice_compare(upload, p);
  upload := sluice_fill(upload, drive, p);
  INSERT INTO uploads VALUES (upload.*);
  SELECT * INTO node FROM nodes WHERE id = upload.node_id;
  PERFORM sluice_completion_events(upload, node, drive.name, true);
  RETURN jsonb_build_object('upload', to_jsonb(upload), 'node', to_jsonb(node), 'replayed', false,
    'made', current_setting('sluice.made', true));
END $$;

-- The request was answered before. If it brought another object this time, nobody will ever refer to it.
CREATE FUNCTION sluice_replay_whole(answer jsonb, p jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  upload jsonb := answer->'upload';
  drive drives;
BEGIN
  IF upload->>'status' = 'COMPLETED' THEN
    IF upload->>'object_key' <> p->>'objectKey' THEN
      SELECT * INTO drive FROM drives WHERE id = (upload->>'drive_id')::uuid;
      PERFORM sluice_doom(drive, p->>'objectKey');
    END IF;
    RETURN answer;
  END IF;
  IF upload->>'status' <> 'OPEN' THEN
    PERFORM sluice_refuse('UPLOAD_ENDED', jsonb_build_object('upload', upload->'id', 'status', upload->'status'));
  END IF;
  IF upload->>'id' <> p->>'id' THEN
    PERFORM sluice_refuse('IDEMPOTENCY_IN_PROGRESS', jsonb_build_object('upload', upload->'id'));
  END IF;
  IF upload->>'object_key' <> p->>'objectKey' THEN
    PERFORM sluice_refuse('IDEMPOTENCY_CONFLICT', jsonb_build_object('key', p->'id'));
  END IF;
  RETURN sluice_activate(p || jsonb_build_object('fence', upload->'fence')) || jsonb_build_object('replayed', true);
END $$;

CREATE FUNCTION sluice_end(p jsonb) RETURNS jsonb LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  upload uploads;
  drive drives;
  node nodes;
BEGIN
  upload := sluice_lock_upload(p->>'id');
  SELECT * INTO drive FROM drives WHERE id = upload.drive_id;
  IF upload.status <> 'OPEN' THEN RETURN jsonb_build_object('changed', false, 'upload', to_jsonb(upload)); END IF;
  UPDATE uploads SET status = p->>'status', reason = p->>'reason', ended_at = clock_timestamp()
    WHERE id = upload.id RETURNING * INTO upload;
  -- An object that was made in the last moment is nobody's now.
  PERFORM sluice_doom(drive, upload.object_key);
  SELECT * INTO node FROM nodes WHERE id = upload.node_id AND version = 0 FOR UPDATE;
  IF FOUND AND NOT EXISTS (SELECT 1 FROM uploads WHERE node_id = node.id AND status = 'OPEN') THEN
    IF upload.status = 'FAILED' THEN
      UPDATE nodes SET status = 'FAILED', updated_at = clock_timestamp() WHERE id = node.id;
    ELSE
      DELETE FROM nodes WHERE id = node.id;
    END IF;
  END IF;
  PERFORM sluice_upload_event(upload, drive.name, 'failed');
  RETURN jsonb_build_object('changed', true, 'upload', to_jsonb(upload));
END $$;
