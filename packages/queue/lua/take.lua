#!lua flags=allow-oom
-- take.lua: the hot path of claim.lua, for a busy worker that knows from its last look where plain jobs are waiting: acknowledges,
-- and takes the head of that one list. A redis.call costs about a microsecond whatever it does, and an argument a tenth of that, so
-- this script makes a dozen calls for a whole batch and looks at nothing else. A worker looks properly, with claim.lua, at least
-- every 10 ms: that is how long a more urgent job, a due one or a group can be overlooked. Rules (pause, limits) and the event
-- stream are never overlooked: when there are any, or when this session is on watch, the answer is 'LOOK', and nothing is done.
-- KEYS cfg HASH, active HASH, lanes HASH, jobs HASH, wake LIST, wait LIST, dependents HASH, stats HASH
-- ARGV session, lane, seq, want, list, runs
-- list: msgpack {'#', '#lane', id, …}, the ids being acknowledged; runs: msgpack {token, how many of them, …}
-- Returns {'LEASE_LOST'}, {'STALE'}, {'LOOK'} or {'OK' | 'REPEAT', token, now ms, msgpack {id, packed, …}, 0, flags (16: more is
--   waiting), ids not held any more, ids that need settle.lua, {}, -1}
local BYTES_CHECKED_EVERY = 64
local CLAIM_BYTES = 8 * 1024 * 1024

local answer = early_answer()
if answer then return answer end
local conf = redis.call('HMGET', cfg, 'token', 'rules', 'events', 'watch')
if conf[2] or conf[3] or conf[4] == session then return { 'LOOK' } end
acknowledge()

local ids = redis.call('LPOP', wait, want) or {}
local token, given, count, bytes = '', {}, 0, 0
local records = { lane, '' }
local more = false
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
        records[count + 3] = id
        records[count + 4] = token
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
redis.call('HSET', held, unpack(records))
keep_answer()
if redis.call('EXISTS', wait) == 1 then
  more = true
  if redis.call('EXISTS', wake) == 0 then redis.call('RPUSH', wake, 1) end
end
return { 'OK', token, now, cmsgpack.pack(given), 0, more and 16 or 0, refused, special, {}, -1 }
