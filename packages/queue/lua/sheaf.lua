-- sheaf.lua (prelude): the jobs of a quick claim, tied together.
--
-- A worker whose handlers take no time ends whole claims at once. For such a worker take.lua writes a claim as one value, in the
-- field of its lane (`seq:token=` and a msgpack list of ids), instead of one field per job, and the lane's next call ends all of
-- them with one word. Whoever needs a single job of a sheaf unties it first: then each has its own field, id → token, as ever.
local LANES = { '#0', '#1' }
local META_FIELDS = 3 -- of a live session: its description and its lanes

-- The ids in a sheaf, their token, and what the lane says without them; nothing when there is no sheaf.
local function sheaf_in(said)
  local rest, token, list = (said or ''):match('^(%d+:(%d+))=(.*)$')
  if rest then return cmsgpack.unpack(list), token, rest end
end

local function untie_lane(held, name, said)
  local ids, token, rest = sheaf_in(said)
  if not ids then return false end
  local fields = { name, rest }
  for _, id in ipairs(ids) do
    fields[#fields + 1] = id
    fields[#fields + 1] = token
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

-- How many jobs a session holds; `fields` of its hash are not jobs: META_FIELDS, or none once it is being rescued.
local function count_held(held, fields)
  local count = redis.call('HLEN', held) - fields
  for _, said in ipairs(redis.call('HMGET', held, unpack(LANES))) do count = count + #(sheaf_in(said) or {}) end
  return count
end

-- The token under which a session holds a job. Reads only.
local function token_in(held, id)
  local found = redis.call('HMGET', held, id, unpack(LANES))
  if found[1] then return found[1] end
  for i = 2, #found do
    local ids, token = sheaf_in(found[i])
    for _, other in ipairs(ids or {}) do
      if other == id then return token end
    end
  end
end

-- The same for a job that is about to leave: afterwards it has a field of its own.
local function token_apart(held, id)
  local token = redis.call('HGET', held, id)
  if token or not untie(held) then return token end
  return redis.call('HGET', held, id)
end
