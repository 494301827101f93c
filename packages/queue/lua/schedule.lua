#!lua
-- schedule.lua: sets or changes a schedule. While its times stay the same it keeps its next tick, so that every start of a
-- program may declare its schedules, and a new payload does not cost a tick that is overdue.
-- KEYS schedules HASH, ticks ZSET, wake LIST
-- ARGV name, spec, next
-- spec: JSON, of which only `when` is read here
-- Returns 'SET', 'CHANGED' or 'SAME'
local stored = redis.call('HGET', schedules, name)
local ticking = stored and redis.call('ZSCORE', ticks, name)
if stored == spec and ticking then return 'SAME' end
redis.call('HSET', schedules, name, spec)
if ticking and cjson.decode(stored).when == cjson.decode(spec).when then return 'CHANGED' end
redis.call('ZADD', ticks, next, name)
if redis.call('EXISTS', wake) == 0 then redis.call('RPUSH', wake, 1) end
return stored and 'CHANGED' or 'SET'
