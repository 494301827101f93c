#!lua
-- publish.lua: what a process has counted, for whoever adds up all processes. Those that have not been heard of for long are left out,
-- so that the hash holds no more than the processes of the last minutes. Should an evicting Redis have forgotten who published when,
-- all begin anew, or those that are gone would stay. Repeating it writes the same again.
-- KEYS statistics HASH, published ZSET
-- ARGV process, text, keepMs
-- Returns 'PUBLISHED'
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
if redis.call('ZCARD', published) == 0 then redis.call('DEL', statistics) end
redis.call('HSET', statistics, process, text)
redis.call('ZADD', published, nowMs, process)
for _, gone in ipairs(redis.call('ZRANGE', published, '-inf', nowMs - keepMs, 'BYSCORE', 'LIMIT', 0, 100)) do
  redis.call('HDEL', statistics, gone)
  redis.call('ZREM', published, gone)
end
redis.call('PEXPIRE', statistics, keepMs)
redis.call('PEXPIRE', published, keepMs)
return 'PUBLISHED'
