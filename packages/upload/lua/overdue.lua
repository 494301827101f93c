#!lua flags=allow-oom
-- overdue.lua: uploads that somebody should look at now. Each is handed out once per pause. A clock that was set back since the last look
-- would keep all of them waiting for as long as it was set back: then every look is brought forward by that.
-- KEYS attention ZSET, budget HASH
-- ARGV limit, pauseMs
-- Returns ids
-- After a failover the next server's clock may be a little behind.
local CLOCKS_DIFFER_MS = 1000
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local back = tonumber(redis.call('HGET', budget, 'looked') or now) - now
if back > CLOCKS_DIFFER_MS then
  local all = redis.call('ZRANGE', attention, 0, -1, 'WITHSCORES')
  for i = 1, #all, 2 do redis.call('ZADD', attention, all[i + 1] - back, all[i]) end
end
redis.call('HSET', budget, 'looked', now)
local due = redis.call('ZRANGE', attention, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)
for _, upload in ipairs(due) do redis.call('ZADD', attention, now + pauseMs, upload) end
return due
