-- 0001-tables: what Sluice remembers.
--
-- Times are the database's. Text is compared byte by byte (collation "C"), so that an order never depends on a locale and
-- everything below a folder is one range of an index: from 'folder/' to 'folder0', '0' being the character after '/'.
--
-- There are no foreign keys between drives, nodes and uploads. Each insert would put a share lock on the row of its
-- drive and of its folder, which all uploads of a folder have in common. The functions of 0002 take an advisory lock on
-- the drive instead: shared for work on one file, exclusive for what moves or removes folders.

-- Nor are there CHECK constraints: PostgreSQL would read each of them from its text again for each insert. The functions are the
-- only ones that write these rows.

CREATE TABLE drives (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  tenant text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  bucket text NOT NULL,
  prefix text NOT NULL DEFAULT '',
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  UNIQUE (tenant, name)
);

-- A file that never was ACTIVE has version 0. A folder is always ACTIVE.
CREATE TABLE nodes (
  id uuid PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL,
  owner text,
  drive_id uuid NOT NULL,
  parent_id uuid,
  type text NOT NULL, -- FOLDER, FILE
  name text COLLATE "C" NOT NULL,
  path text COLLATE "C" NOT NULL,
  content_type text,
  size bigint,
  object_key text,
  etag text,
  sha256 text,
  crc64 text,
  status text NOT NULL, -- PENDING, UPLOADING, ACTIVE, FAILED
  metadata jsonb NOT NULL DEFAULT '{}',
  client_node_id text,
  version integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE UNIQUE INDEX nodes_path ON nodes (drive_id, path);
-- The drive stands for the root. It must not lead this index: while a table has no statistics, PostgreSQL takes any index that
-- begins with the drive for as good as nodes_path, keeps that plan, and reads the whole drive for one path.
CREATE INDEX nodes_children ON nodes ((coalesce(parent_id, drive_id)), name);
CREATE UNIQUE INDEX nodes_client_node_id ON nodes (drive_id, client_node_id) WHERE client_node_id IS NOT NULL;

-- `base_version` is the version a node had when it was deleted under an open upload: should the upload bring it back, its
-- versions go on from there, and so no event id is used twice.
CREATE TABLE uploads (
  id text COLLATE "C" PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL,
  owner text,
  drive_id uuid NOT NULL,
  node_id uuid NOT NULL,
  path text COLLATE "C" NOT NULL,
  object_key text NOT NULL,
  status text NOT NULL, -- OPEN, COMPLETED, FAILED, CANCELLED, EXPIRED
  if_exists text NOT NULL, -- replace, fail
  fence bigint NOT NULL DEFAULT 0,
  declared_size bigint,
  content_type text,
  sha256 text,
  metadata jsonb NOT NULL DEFAULT '{}',
  client_node_id text,
  idempotency_key text COLLATE "C",
  request_digest text,
  is_update boolean NOT NULL,
  previous_version integer,
  base_version integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  ended_at timestamptz,
  reason text,
  result jsonb,
  if_match text[], -- ETags one of which the file to be replaced must have
  claimed_size bigint -- of one that did not declare its size: what it has claimed of its tenant's quota
);
CREATE UNIQUE INDEX uploads_idempotency ON uploads (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL;
-- Only what is open is looked for by anything but its id: uploads that ended cost these indexes nothing.
CREATE INDEX uploads_open_tenant ON uploads (tenant) WHERE status = 'OPEN';
CREATE INDEX uploads_open_age ON uploads (created_at) WHERE status = 'OPEN';
CREATE INDEX uploads_open_node ON uploads (node_id) WHERE status = 'OPEN';
-- Those that ended long ago are removed, oldest first.
CREATE INDEX uploads_ended ON uploads (ended_at) WHERE status <> 'OPEN';

-- A row leaves the outbox when its event was published. The table is small and restless: vacuum it by count, not by share.
CREATE TABLE outbox (
  seq bigserial PRIMARY KEY,
  event_id text COLLATE "C" NOT NULL UNIQUE,
  topic text NOT NULL,
  node_id uuid NOT NULL,
  payload jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- The sum over the shards counts; a single shard may be negative. Shards keep a tenant's uploads from queueing for one row.
CREATE TABLE usage (
  tenant text COLLATE "C" NOT NULL,
  shard smallint NOT NULL, -- 0 to 15
  bytes bigint NOT NULL,
  files bigint NOT NULL,
  PRIMARY KEY (tenant, shard)
) WITH (fillfactor = 50);

-- Objects that no node refers to any more. The bucket is copied: the drive may be gone before the object is.
CREATE TABLE doomed_objects (
  object_key text COLLATE "C" PRIMARY KEY,
  drive_id uuid NOT NULL,
  bucket text NOT NULL,
  since timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX doomed_objects_since ON doomed_objects (since);
