-- 0006-claims: an upload that did not announce its size claims the bytes of its tenant's quota as they come.

ALTER TABLE uploads ADD COLUMN claimed_size bigint;

-- As before; what uploads of unknown length have claimed counts like what the others have announced.
CREATE OR REPLACE FUNCTION sluice_admit(of_tenant text, more_bytes bigint, limits jsonb, except_upload text)
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
