#!lua flags=allow-oom
-- take.lua: the hot path of claim.lua, for a busy worker that knows from its last look where plain jobs are waiting: acknowledges,
-- and takes the head of that one list. A redis.call costs about a microsecond whatever it does, and an argument a tenth of that, so
-- this script makes a dozen calls for a whole batch and looks at nothing else. A worker looks properly, with claim.lua, at least
-- every 10 ms: that is how long a more urgent job, a due one or a group can be overlooked. Rules (pause, limits) and the event
-- stream are never overlooked: when there are any, or when this session is on watch, the answer is 'LOOK', and nothing is done.
-- KEYS cfg HASH, active HASH, lanes HASH, jobs HASH, wake LIST, wait LIST, dependents HASH, stats HASH
-- ARGV session, lane, seq, want, list, runs, whole, tie, level
-- list: msgpack {'#', '#lane', id, …}, the ids being acknowledged; runs: msgpack {token, how many of them, …}
-- whole: '1' to acknowledge the sheaf of this lane as well; tie: '1' to get a sheaf (sheaf.lua), with bales as they are (bale.lua)
-- level: the priority of the list
-- Returns {'LEASE_LOST'}, {'STALE'}, {'LOOK'}, {'SPLIT'} (there is no sheaf: name the ids) or
--   {'OK' | 'REPEAT', token, now ms, msgpack {id, packed, …} or {id or bale, packed, …} as it is, 0, flags (16: more is waiting, 512: a sheaf), ids not held any more, ids that need settle.lua, {}, -1}
local BYTES_CHECKED_EVERY = 64
local CLAIM_BYTES = 8 * 1024 * 1024
local HEADER_BYTES = 8

local answer = early_answer()
if answer then return answer end
local conf = redis.call('HMGET', cfg, 'token', 'rules', 'events', 'watch')
if conf[2] or conf[3] or conf[4] == session then return { 'LOOK' } end
acknowledge()

local names, jobs_taken, bales = pop(wait, level, tonumber(want), tie == '1')
local token, given, given_names, bytes = '', {}, {}, 0
local flags = 0

-- The bytes of some of them. Of bales they are known already.
local function read(from, to)
  local unread, packs = {}, {}
  for i = from, to do
    if not bales[names[i]] then unread[#unread + 1] = names[i] end
  end
  local found = #unread > 0 and redis.call('HMGET', jobs, unpack(unread)) or {}
  local next_found = 1
  for i = from, to do
    packs[i] = bales[names[i]]
    if not packs[i] then
      packs[i] = found[next_found]
      next_found = next_found + 1
    end
  end
  return packs
end

if #names > 0 then
  token = next_token(conf[1])
  redis.call('HSET', cfg, 'token', token)
  for from = 1, #names, BYTES_CHECKED_EVERY do
    local to = math.min(from + BYTES_CHECKED_EVERY - 1, #names)
    if bytes > CLAIM_BYTES then
      -- Too much for one reply: the rest goes back to where it was.
      for i = from, #names do
        local size = bales[names[i]] and bales[names[i]]:byte(2) or 1
        if size > 1 then redis.call('HINCRBY', cfg, 'baled' .. level, size - 1) end
        jobs_taken = jobs_taken - size
      end
      put_back(wait, names, from)
      break
    end
    local packs = read(from, to)
    for i = from, to do
      local packed, name = packs[i], names[i]
      if #packed >= HEADER_BYTES then
        given[#given + 1] = name
        given[#given + 1] = packed
        given_names[#given_names + 1] = name
        bytes = bytes + #packed
      else
        -- The tombstone of a cancelled job.
        redis.call('HDEL', jobs, name)
        redis.call('HINCRBY', cfg, 'tombstones', -1)
        jobs_taken = jobs_taken - 1
      end
    end
  end
end
local records = { lane, seq .. ':' .. token }
if tie == '1' and #given > 0 then
  records[2] = records[2] .. '=' .. jobs_taken .. ';' .. cmsgpack.pack(given_names)
  flags = flags + 512
else
  for i, id in ipairs(given_names) do
    records[2 * i + 1] = id
    records[2 * i + 2] = token
  end
end
redis.call('HSET', held, unpack(records))
keep_answer()
if redis.call('EXISTS', wait) == 1 then
  flags = flags + 16
  if redis.call('EXISTS', wake) == 0 then redis.call('RPUSH', wake, 1) end
end
return { 'OK', token, now, as_reply(given), 0, flags, refused, special, {}, -1 }
