-- 0003-nodes: folders, moves and removals. Whatever moves, and whatever removes a folder, has the drive for itself.

CREATE FUNCTION sluice_create_folder(p jsonb) RETURNS jsonb LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  drive drives;
  folder nodes;
  parent nodes;
  full_path text := p->>'path';
  made uuid;
BEGIN
  drive := sluice_drive(p->>'tenant', p->>'drive');
  IF full_path IS NULL THEN
    full_path := p->>'name';
    IF p->>'parentId' IS NOT NULL THEN
      SELECT * INTO parent FROM nodes WHERE id = (p->>'parentId')::uuid AND drive_id = drive.id;
      IF NOT FOUND THEN PERFORM sluice_refuse('NODE_NOT_FOUND', jsonb_build_object('node', p->'parentId')); END IF;
      full_path := parent.path || '/' || full_path;
    END IF;
  END IF;
  SELECT * INTO folder FROM nodes WHERE drive_id = drive.id AND path = full_path;
  IF folder.type = 'FILE' THEN
    PERFORM sluice_refuse('NODE_EXISTS', jsonb_build_object('path', full_path, 'node', folder.id));
  END IF;
  IF folder.id IS NOT NULL THEN RETURN jsonb_build_object('node', to_jsonb(folder), 'created', false); END IF;
  IF octet_length(full_path) > 1024 THEN
    PERFORM sluice_refuse('PATH_TOO_LONG', jsonb_build_object('bytes', octet_length(full_path), 'limit', 1024));
  END IF;
  made := sluice_folder(drive, p->>'owner', full_path);
  UPDATE nodes SET metadata = coalesce(p->'metadata', metadata) WHERE id = made RETURNING * INTO folder;
  RETURN jsonb_build_object('node', to_jsonb(folder), 'created', true, 'made', current_setting('sluice.made', true));
END $$;

-- Everything below a folder changes its path in the same transaction; open uploads below it follow.
CREATE FUNCTION sluice_move(p jsonb) RETURNS jsonb LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  before nodes;
  node nodes;
  parent nodes;
  new_path text;
  longest integer;
  drive drives;
BEGIN
  SELECT * INTO before FROM nodes WHERE id = (p->>'id')::uuid AND tenant = p->>'tenant';
  IF FOUND THEN
    PERFORM sluice_lock_drive(before.drive_id, true);
    SELECT * INTO before FROM nodes WHERE id = before.id FOR UPDATE;
  END IF;
  IF before.id IS NULL THEN PERFORM sluice_refuse('NODE_NOT_FOUND', jsonb_build_object('node', p->'id')); END IF;
  parent.id := before.parent_id;
  IF p ? 'parentId' THEN parent.id := (p->>'parentId')::uuid; END IF;
  new_path := coalesce(p->>'name', before.name);
  IF parent.id IS NOT NULL THEN
    SELECT * INTO parent FROM nodes WHERE id = parent.id AND drive_id = before.drive_id;
    IF NOT FOUND THEN PERFORM sluice_refuse('NODE_NOT_FOUND', jsonb_build_object('node', p->'parentId')); END IF;
    IF parent.type <> 'FOLDER' THEN PERFORM sluice_refuse('NOT_A_FOLDER', jsonb_build_object('path', parent.path)); END IF;
    IF parent.id = before.id OR starts_with(parent.path, before.path || '/') THEN
      PERFORM sluice_refuse('MOVE_INTO_ITSELF', jsonb_build_object('path', before.path, 'to', parent.path));
    END IF;
    new_path := parent.path || '/' || new_path;
  END IF;
  IF new_path = before.path THEN RETURN jsonb_build_object('node', to_jsonb(before), 'changed', false); END IF;
  IF EXISTS (SELECT 1 FROM nodes WHERE drive_id = before.drive_id AND path = new_path) THEN
    PERFORM sluice_refuse('NODE_EXISTS', jsonb_build_object('path', new_path));
  END IF;
  -- A file that never was ACTIVE stays at version 0: it has not happened yet.
  UPDATE nodes SET parent_id = parent.id, name = sluice_base_name(new_path), path = new_path,
    version = CASE WHEN version = 0 THEN 0 ELSE version + 1 END, updated_at = clock_timestamp()
    WHERE id = before.id RETURNING * INTO node;
  UPDATE nodes SET path = new_path || substr(path, length(before.path) + 1)
    WHERE drive_id = before.drive_id AND path >= before.path || '/' AND path < before.path || '0';
  SELECT max(octet_length(path)) INTO longest FROM nodes
    WHERE drive_id = before.drive_id AND (id = node.id OR (path >= new_path || '/' AND path < new_path || '0'));
  IF longest > 1024 THEN
    PERFORM sluice_refuse('PATH_TOO_LONG', jsonb_build_object('bytes', longest, 'limit', 1024));
  END IF;
  UPDATE uploads SET path = moved.path FROM nodes moved
    WHERE uploads.status = 'OPEN' AND uploads.node_id = moved.id AND uploads.drive_id = node.drive_id
      AND (moved.id = node.id OR (moved.path >= new_path || '/' AND moved.path < new_path || '0'));
  SELECT * INTO drive FROM drives WHERE id = node.drive_id;
  IF node.version > 0 THEN
    PERFORM sluice_emit(node.id::text || ':' || node.version || ':updated', 'repository.documents.updated', node.id,
      sluice_describe(node, drive.name) || jsonb_build_object('previousPath', before.path));
  ELSE
    -- It is in lists all the same, and may be moved often without getting a version.
    PERFORM sluice_folder_changed(gen_random_uuid()::text || ':left', drive, sluice_parent_path(before.path), node.id);
    PERFORM sluice_folder_changed(gen_random_uuid()::text || ':entered', drive, sluice_parent_path(node.path), node.id);
  END IF;
  RETURN jsonb_build_object('node', to_jsonb(node), 'changed', true);
END $$;

-- Removes a file, or a folder with what is in it if that was asked for. The objects are doomed in the same transaction.
CREATE FUNCTION sluice_delete(p jsonb) RETURNS jsonb LANGUAGE plpgsql SET enable_seqscan = off AS $$
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
    ELSIF gone.id = top.id THEN
      PERFORM sluice_folder_changed(gone.id::text || ':gone', drive, sluice_parent_path(gone.path), gone.id);
    END IF;
  END LOOP;
  IF files > 0 THEN PERFORM sluice_use(drive.tenant, -bytes, -files); END IF;
  RETURN jsonb_build_object('deleted', removed, 'objectKeys', to_jsonb(keys),
    'path', top.path, 'drive', drive.name, 'isFolder', top.type = 'FOLDER');
END $$;

CREATE FUNCTION sluice_delete_drive(of_tenant text, drive_name text) RETURNS boolean LANGUAGE plpgsql AS $$
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
