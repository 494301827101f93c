-- The drive with these settings, made if there is none, and the event that tells of it. The caller compares the settings: one that was
-- there may have others. One that is deleted at this moment is made again.
CREATE FUNCTION sluice_create_drive(p jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  drive drives;
BEGIN
  FOR attempt IN 1..10 LOOP
    INSERT INTO drives (tenant, name, bucket, prefix) VALUES (p->>'tenant', p->>'name', p->>'bucket', p->>'prefix')
    ON CONFLICT (tenant, name) DO NOTHING RETURNING * INTO drive;
    IF FOUND THEN
      PERFORM sluice_emit(drive.id::text || ':created', 'repository.drives.created', drive.id,
        jsonb_build_object('tenant', drive.tenant, 'drive', drive.name));
      RETURN jsonb_build_object('drive', to_jsonb(drive), 'created', true);
    END IF;
    SELECT * INTO drive FROM drives WHERE tenant = p->>'tenant' AND name = p->>'name';
    IF FOUND THEN RETURN jsonb_build_object('drive', to_jsonb(drive), 'created', false); END IF;
  END LOOP;
  PERFORM sluice_refuse('DRIVE_CONFLICT', jsonb_build_object('drive', p->>'name'));
END $$;

-- As before, and one thing more: whoever has chosen the place of the object by a drive that it knew says which place that is. If another
-- drive has the name by now, with another bucket or prefix, the object is not where that one looks for it.
CREATE OR REPLACE FUNCTION sluice_draft(p jsonb, drive drives) RETURNS uploads LANGUAGE plpgsql AS $$
DECLARE
  upload uploads;
  node nodes;
  folder nodes;
  named nodes;
BEGIN
  IF p->>'bucket' <> drive.bucket OR p->>'prefix' <> drive.prefix THEN
    PERFORM sluice_refuse('DRIVE_NOT_FOUND', jsonb_build_object('drive', drive.name));
  END IF;
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
