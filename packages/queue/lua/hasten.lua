#!lua flags=allow-oom
-- hasten.lua: a delayed job is due now, whatever it waits for: its time, or its next attempt. The next claim places it.
-- KEYS delayed ZSET, wake LIST
-- ARGV id
-- Returns 'HASTENED', or 'ELSEWHERE' when it does not wait for a time
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local due = redis.call('ZSCORE', delayed, id)
if not due or tonumber(due) <= now then return 'ELSEWHERE' end
redis.call('ZADD', delayed, now, id)
if redis.call('EXISTS', wake) == 0 then redis.call('RPUSH', wake, 1) end
return 'HASTENED'
