#!lua flags=allow-oom
-- take.lua: the hot path of claim.lua, for a busy worker that knows from its last look where plain jobs are waiting: acknowledges,
-- and takes the head of that one list. A redis.call costs about a microsecond whatever it does, and an argument a tenth of that, so
-- this script makes a dozen calls for a whole batch and looks at nothing else. A worker looks properly, with claim.lua, at least
-- every 10 ms: that is how long a more urgent job, a due one or a group can be overlooked. Rules (pause, limits) and the event
-- stream are never overlooked: when there are any, or when this session is on watch, the answer is 'LOOK', and nothing is done.
-- KEYS cfg HASH, active HASH, lanes HASH, jobs HASH, wake LIST, wait LIST, dependents HASH, stats HASH
-- ARGV session, lane, seq, want, list, runs, whole, tie
-- list: msgpack {'#', '#lane', id, …}, the ids being acknowledged; runs: msgpack {token, how many of them, …}
-- whole: '1' to acknowledge the sheaf of this lane as well; tie: '1' to get a sheaf (sheaf.lua)
-- Returns {'LEASE_LOST'}, {'STALE'}, {'LOOK'}, {'SPLIT'} (there is no sheaf: name the ids) or
--   {'OK' | 'REPEAT', token, now ms, msgpack {id, packed, …}, 0, flags (16: more is waiting, 512: a sheaf), ids not held any more, ids that need settle.lua, {}, -1}
local BYTES_CHECKED_EVERY = 64
local CLAIM_BYTES = 8 * 1024 * 1024

local answer = early_answer()
if answer then return answer end
local conf = redis.call('HMGET', cfg, 'token', 'rules', 'events', 'watch')
if conf[2] or conf[3] or conf[4] == session then return { 'LOOK' } end
acknowledge()

local ids = redis.call('LPOP', wait, want) or {}
local token, given, count, bytes = '', {}, 0, 0
local records, given_ids = { lane, '' }, {}
local flags = 0
if #ids > 0 then
  token = next_token(conf[1])
  redis.call('HSET', cfg, 'token', token)
  for from = 1, #ids, BYTES_CHECKED_EVERY do
    local to = math.min(from + BYTES_CHECKED_EVERY - 1, #ids)
    if bytes > CLAIM_BYTES then
      -- Too much for one reply: the rest goes back to where it was.
      for i = #ids, from, -1 do redis.call('LPUSH', wait, ids[i]) end
      break
    end
    local packs = redis.call('HMGET', jobs, unpack(ids, from, to))
    for i = from, to do
      local packed, id = packs[i - from + 1], ids[i]
      if packed and #packed >= 8 then
        given[count + 1] = id
        given[count + 2] = packed
        given_ids[count / 2 + 1] = id
        count = count + 2
        bytes = bytes + #packed
      else
        -- The tombstone of a cancelled job.
        redis.call('HDEL', jobs, id)
        redis.call('HINCRBY', cfg, 'tombstones', -1)
      end
    end
  end
end
records[2] = seq .. ':' .. token
if tie == '1' and count > 0 then
  records[2] = records[2] .. '=' .. cmsgpack.pack(given_ids)
  flags = flags + 512
else
  for i, id in ipairs(given_ids) do
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
return { 'OK', token, now, cmsgpack.pack(given), 0, flags, refused, special, {}, -1 }
