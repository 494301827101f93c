-- sheaf.lua (prelude, after bale.lua): the jobs of a quick claim, tied together.
--
-- A worker whose handlers take no time ends whole claims at once. For such a worker take.lua writes a claim as one value, in the
-- field of its lane (`seq:token=`, how many jobs, `;`, and a msgpack list of ids and bales), instead of one field per job, and the
-- lane's next call ends all of them with one word. Whoever needs a single job of a sheaf unties it first: then each has its own
-- field, id → token, as ever.
local LANES = { '#0', '#1' }
local META_FIELDS = 3 -- of a live session: its description and its lanes

-- What is in a sheaf, its token, what the lane says without it, how many jobs it has; nothing when there is no sheaf.
local function sheaf_in(said)
  local rest, token, size, list = (said or ''):match('^(%d+:(%d+))=(%d+);(.*)$')
  if rest then return cmsgpack.unpack(list), token, rest, tonumber(size) end
end

local function untie_lane(held, lane_name, said)
  local names, token, rest = sheaf_in(said)
  if not names then return false end
  local fields = { lane_name, rest }
  for _, name in ipairs(names) do
    for _, id in ipairs(is_bale(name) and undo(name, redis.call('HGET', jobs, name)) or { name }) do
      fields[#fields + 1] = id
      fields[#fields + 1] = token
    end
  end
  redis.call('HSET', held, unpack(fields))
  return true
end

-- Unties the sheaves of all lanes but one; true when there was something to untie.
local function untie(held, except)
  local found = false
  for i, said in ipairs(redis.call('HMGET', held, unpack(LANES))) do
    if LANES[i] ~= except and untie_lane(held, LANES[i], said) then found = true end
  end
  return found
end

-- How many jobs a session holds, and how many fields of `jobs` they have. `fields` of the session's hash are not jobs:
-- META_FIELDS, or none once it is being rescued.
local function count_held(held, fields)
  local count = redis.call('HLEN', held) - fields
  local stored = count
  for _, said in ipairs(redis.call('HMGET', held, unpack(LANES))) do
    local names, _, _, size = sheaf_in(said)
    count = count + (size or 0)
    stored = stored + #(names or {})
  end
  return count, stored
end

-- The token under which a session holds a job. Reads only.
local function token_in(held, id)
  local found = redis.call('HMGET', held, id, unpack(LANES))
  if found[1] then return found[1] end
  local bale = bale_of(id)
  for i = 2, #found do
    local names, token = sheaf_in(found[i])
    for _, name in ipairs(names or {}) do
      if name == id or name == bale then return token end
    end
  end
end

-- The same for a job that is about to leave: afterwards it has a field of its own.
local function token_apart(held, id)
  local token = redis.call('HGET', held, id)
  if token or not untie(held) then return token end
  return redis.call('HGET', held, id)
end

-- The bytes of a job, which afterwards has a field of its own, wherever it is.
local function single_out(id)
  local packed, bale = packed_of(id)
  if not bale then return packed end
  for _, session in ipairs(redis.call('ZRANGE', sessions, 0, -1)) do
    if token_in(active .. session, id) then
      untie(active .. session)
      return packed
    end
  end
  loosen(bale)
  return packed
end
