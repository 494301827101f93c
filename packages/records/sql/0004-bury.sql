-- A small file is stored before the records hear of it. If whoever stored it has been silent for too long, its id is buried: an
-- upload that has ended before it began, so that a late `sluice_store_whole` of the same id is refused.
CREATE FUNCTION sluice_bury(p jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  upload uploads;
  drive drives;
BEGIN
  drive := sluice_drive(p->>'tenant', p->>'drive');
  INSERT INTO uploads (id, tenant, drive_id, node_id, path, object_key, status, if_exists, is_update, ended_at, reason)
  VALUES (p->>'id', drive.tenant, drive.id, gen_random_uuid(), p->>'path', p->>'objectKey', 'EXPIRED', 'replace', false,
    clock_timestamp(), p->>'reason')
  ON CONFLICT (id) DO NOTHING;
  SELECT * INTO upload FROM uploads WHERE id = p->>'id';
  RETURN to_jsonb(upload);
END $$;
