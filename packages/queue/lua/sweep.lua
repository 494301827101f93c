#!lua flags=allow-oom
-- sweep.lua: forgets what has been remembered long enough. Bounded; called every few seconds by a worker.
-- KEYS ended ZSET, results HASH, logs LIST
-- ARGV limit
-- Returns the number of memories removed
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local old = redis.call('ZRANGE', ended, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)
if #old == 0 then return 0 end
redis.call('ZREM', ended, unpack(old))
redis.call('HDEL', results, unpack(old))
for i, id in ipairs(old) do
  redis.call('DEL', logs .. id)
  old[i] = '#' .. id
end
redis.call('HDEL', results, unpack(old))
return #old
