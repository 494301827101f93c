-- 0006-services: what other services found out about files, and who wants to be told of events.
--
-- A result belongs to the bytes that were looked at. The node carries the last one together with the key of its object; once the
-- file is replaced, the key is another one and the result is history. All of them are in the table until the node is deleted.

-- `id` is 'result:' and the sender's own id, or 'sha256:' and the digest of what was said: the two can never be taken for each other.
CREATE TABLE verifications (
  id text COLLATE "C" PRIMARY KEY,
  digest text NOT NULL,
  node_id uuid NOT NULL,
  object_key text NOT NULL,
  version integer NOT NULL,
  user_id text,
  result text NOT NULL, -- approved, rejected
  score double precision,
  decision text,
  metadata jsonb NOT NULL,
  received_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX verifications_node ON verifications (node_id, received_at);

ALTER TABLE nodes ADD COLUMN verification jsonb;

-- What is said about a file goes with it.
CREATE FUNCTION sluice_forget_verifications() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
  DELETE FROM verifications WHERE node_id IN (SELECT id FROM gone WHERE verification IS NOT NULL);
  RETURN NULL;
END $$;

CREATE TRIGGER forget_verifications AFTER DELETE ON nodes REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION sluice_forget_verifications();

-- Takes a result in: once, however often it is delivered. The same id with something else to say is refused.
CREATE FUNCTION sluice_verify(p jsonb) RETURNS jsonb LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  known verifications;
  node nodes;
  drive drives;
BEGIN
  SELECT * INTO node FROM nodes WHERE id = (p->>'nodeId')::uuid;
  IF FOUND THEN
    PERFORM sluice_lock_drive(node.drive_id, false);
    SELECT * INTO node FROM nodes WHERE id = node.id FOR UPDATE;
    SELECT * INTO drive FROM drives WHERE id = node.drive_id;
  END IF;
  -- Behind the lock: of two deliveries at once, the second finds what the first has written.
  SELECT * INTO known FROM verifications WHERE id = p->>'id';
  IF FOUND THEN
    IF known.digest <> p->>'digest' THEN
      PERFORM sluice_refuse('RESULT_CONFLICT', jsonb_build_object('result', p->>'resultId'));
    END IF;
    RETURN jsonb_build_object('receivedAt', known.received_at, 'replayed', true,
      'tenant', node.tenant, 'drive', drive.name, 'path', node.path);
  END IF;
  IF node.id IS NULL OR node.type <> 'FILE' OR node.status <> 'ACTIVE' THEN
    PERFORM sluice_refuse('NODE_NOT_FOUND', jsonb_build_object('node', p->>'nodeId'));
  END IF;
  INSERT INTO verifications (id, digest, node_id, object_key, version, user_id, result, score, decision, metadata)
  VALUES (p->>'id', p->>'digest', node.id, node.object_key, node.version, p->>'userId', p->>'result',
    (p->>'score')::double precision, p->>'decision', p->'metadata')
  RETURNING * INTO known;
  UPDATE nodes SET verification = jsonb_strip_nulls(jsonb_build_object(
    'objectKey', known.object_key, 'result', known.result, 'score', known.score, 'decision', known.decision,
    'receivedAt', known.received_at))
  WHERE id = node.id;
  PERFORM sluice_emit(known.id || ':verified', 'repository.documents.verified', node.id,
    sluice_describe(node, drive.name) || jsonb_strip_nulls(jsonb_build_object(
      'resultId', p->'resultId', 'userId', known.user_id, 'verificationResult', known.result, 'score', known.score,
      'decision', known.decision)) || jsonb_build_object('metadata', known.metadata));
  RETURN jsonb_build_object('receivedAt', known.received_at, 'replayed', false,
    'tenant', node.tenant, 'drive', drive.name, 'path', node.path);
END $$;

-- Who wants to be told. A secret is sealed before it comes here; while one replaces another there are two, and the old one ends by itself.
CREATE TABLE webhooks (
  id text COLLATE "C" PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL, -- '*' is told of everything
  url text NOT NULL,
  topics text[] NOT NULL,
  secrets jsonb NOT NULL, -- [{sealed, endsAt?}], the newest first
  active boolean NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX webhooks_tenant ON webhooks (tenant, id);
