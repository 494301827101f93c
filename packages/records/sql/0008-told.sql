-- 0008-told: whoever keeps copies of what the records say is told what has gone. A deletion says where the node was, and a drive
-- that is deleted has an event.

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
    IF gone.id = top.id THEN top := gone; END IF;
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
  RETURN jsonb_build_object('deleted', removed, 'objectKeys', to_jsonb(keys),
    'path', top.path, 'drive', drive.name, 'isFolder', top.type = 'FOLDER');
END $$;

CREATE OR REPLACE FUNCTION sluice_delete_drive(of_tenant text, drive_name text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  drive drives;
BEGIN
  SELECT * INTO drive FROM drives WHERE tenant = of_tenant AND name = drive_name;
  IF NOT FOUND THEN RETURN false; END IF;
  PERFORM sluice_lock_drive(drive.id, true);
  IF EXISTS (SELECT 1 FROM nodes WHERE drive_id = drive.id)
    OR EXISTS (SELECT 1 FROM uploads WHERE tenant = of_tenant AND status = 'OPEN' AND drive_id = drive.id) THEN
    PERFORM sluice_refuse('DRIVE_NOT_EMPTY', jsonb_build_object('drive', drive_name));
  END IF;
  DELETE FROM drives WHERE id = drive.id;
  IF NOT FOUND THEN RETURN false; END IF;
  PERFORM sluice_emit(drive.id::text || ':deleted', 'repository.drives.deleted', drive.id,
    jsonb_build_object('tenant', of_tenant, 'drive', drive_name));
  RETURN true;
END $$;
