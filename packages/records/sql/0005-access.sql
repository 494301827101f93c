-- 0005-access: who may ask, and what was done by whom.
--
-- Every process that answers requests has all keys in its memory. So that it need not read them again and again, each change of them
-- raises the revision in `access_state`; reading one number tells whether anything is new. The row also makes those who change keys
-- wait for each other, so that rules about all keys together ("one admin must remain") hold.

CREATE TABLE keys (
  id text COLLATE "C" PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL, -- '*' is the whole installation
  role text NOT NULL, -- viewer, operator, admin
  name text NOT NULL,
  digest bytea NOT NULL, -- SHA-256 of the key's text, which nobody keeps
  old_digest bytea, -- of the text before the last rotation, good until old_until
  old_until timestamptz,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  created_by text NOT NULL,
  expires_at timestamptz,
  revoked_at timestamptz,
  used_at timestamptz -- to the minute, more or less
);
CREATE INDEX keys_tenant ON keys (tenant, id);

-- Sessions that were ended before their time. They run out by themselves.
CREATE TABLE ended_sessions (
  id text COLLATE "C" PRIMARY KEY,
  until timestamptz NOT NULL
);

-- `closed` from the first key on, and for ever: when the last key has been revoked or has expired, the door does not open again.
CREATE TABLE access_state (
  one boolean PRIMARY KEY DEFAULT true,
  revision bigint NOT NULL DEFAULT 0,
  closed boolean NOT NULL DEFAULT false
);
INSERT INTO access_state DEFAULT VALUES;

CREATE FUNCTION sluice_change_access() RETURNS access_state LANGUAGE plpgsql AS $$
DECLARE
  state access_state;
BEGIN
  UPDATE access_state SET revision = revision + 1 RETURNING * INTO state;
  RETURN state;
END $$;

CREATE FUNCTION sluice_is_live(key keys) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT key.revoked_at IS NULL AND (key.expires_at IS NULL OR key.expires_at > clock_timestamp());
$$;

-- `configured`: there are keys besides these, so that the first one here need not be the one that makes all others.
CREATE FUNCTION sluice_create_key(p jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  state access_state := sluice_change_access();
  key keys;
BEGIN
  SELECT * INTO key FROM keys WHERE id = p->>'id';
  IF FOUND THEN RETURN to_jsonb(key) - 'digest' - 'old_digest'; END IF;
  IF NOT state.closed AND NOT (p->>'configured')::boolean AND (p->>'tenant' <> '*' OR p->>'role' <> 'admin') THEN
    PERFORM sluice_refuse('FIRST_KEY', '{}');
  END IF;
  IF (SELECT count(*) FROM keys AS known WHERE sluice_is_live(known)) >= (p->>'limit')::bigint THEN
    PERFORM sluice_refuse('TOO_MANY_KEYS', jsonb_build_object('limit', p->'limit'));
  END IF;
  INSERT INTO keys (id, tenant, role, name, digest, created_by, expires_at)
  VALUES (p->>'id', p->>'tenant', p->>'role', p->>'name', decode(p->>'digest', 'hex'), p->>'createdBy',
    clock_timestamp() + (p->>'expiresInMs')::bigint * interval '1 millisecond')
  RETURNING * INTO key;
  UPDATE access_state SET closed = true;
  RETURN to_jsonb(key) - 'digest' - 'old_digest';
END $$;

-- The key, if it is the tenant's (any, if none is given) and has not ended.
CREATE FUNCTION sluice_own_key(key_id text, of_tenant text) RETURNS keys LANGUAGE plpgsql AS $$
DECLARE
  key keys;
BEGIN
  SELECT * INTO key FROM keys WHERE id = key_id AND (of_tenant IS NULL OR tenant = of_tenant);
  IF NOT FOUND THEN PERFORM sluice_refuse('KEY_NOT_FOUND', jsonb_build_object('key', key_id)); END IF;
  RETURN key;
END $$;

-- The same new digest again is the same rotation: its reply was lost.
CREATE FUNCTION sluice_rotate_key(p jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  fresh constant bytea := decode(p->>'digest', 'hex');
  key keys;
BEGIN
  PERFORM sluice_change_access();
  key := sluice_own_key(p->>'id', p->>'tenant');
  IF NOT sluice_is_live(key) THEN PERFORM sluice_refuse('KEY_ENDED', jsonb_build_object('key', key.id)); END IF;
  IF key.digest <> fresh THEN
    UPDATE keys SET digest = fresh, old_digest = key.digest,
      old_until = clock_timestamp() + (p->>'graceMs')::bigint * interval '1 millisecond'
    WHERE id = key.id RETURNING * INTO key;
  END IF;
  RETURN to_jsonb(key) - 'digest' - 'old_digest';
END $$;

CREATE FUNCTION sluice_revoke_key(p jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  key keys;
BEGIN
  PERFORM sluice_change_access();
  key := sluice_own_key(p->>'id', p->>'tenant');
  IF key.revoked_at IS NULL THEN
    IF key.tenant = '*' AND key.role = 'admin' AND NOT (p->>'configuredAdmin')::boolean AND NOT EXISTS (
      SELECT 1 FROM keys AS other
      WHERE other.tenant = '*' AND other.role = 'admin' AND other.id <> key.id AND sluice_is_live(other)
    ) THEN
      PERFORM sluice_refuse('LAST_ADMIN', jsonb_build_object('key', key.id));
    END IF;
    UPDATE keys SET revoked_at = clock_timestamp() WHERE id = key.id RETURNING * INTO key;
  END IF;
  RETURN to_jsonb(key) - 'digest' - 'old_digest';
END $$;

CREATE FUNCTION sluice_end_session(session_id text, lives_until timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM sluice_change_access();
  DELETE FROM ended_sessions WHERE until < clock_timestamp();
  INSERT INTO ended_sessions (id, until) VALUES (session_id, lives_until) ON CONFLICT (id) DO NOTHING;
END $$;

-- What was changed, by whom. A row is written before the change, without an outcome, and completed after it: one that stays without an
-- outcome tells of a process that died in between, and that the change may or may not have happened.
CREATE TABLE audit (
  seq bigserial PRIMARY KEY,
  id uuid NOT NULL UNIQUE, -- made by whoever begins the row, so that beginning it twice makes one
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  tenant text COLLATE "C", -- NULL for what concerns the installation
  action text COLLATE "C" NOT NULL,
  target text NOT NULL,
  actor text COLLATE "C" NOT NULL, -- id of the key, or `open`
  actor_name text NOT NULL,
  via text NOT NULL,
  address text NOT NULL,
  request_id text NOT NULL,
  outcome text, -- done, refused, failed
  status integer,
  details jsonb NOT NULL DEFAULT '{}',
  ended_at timestamptz
);
CREATE INDEX audit_tenant ON audit (tenant, seq);
CREATE INDEX audit_action ON audit (action, seq);
CREATE INDEX audit_actor ON audit (actor, seq);
CREATE INDEX audit_at ON audit (at);
