#!lua flags=allow-oom
-- unschedule.lua: a schedule ends. The jobs that it made stay.
-- KEYS schedules HASH, ticks ZSET
-- ARGV name
-- Returns 'REMOVED' or 'UNKNOWN'
redis.call('ZREM', ticks, name)
return redis.call('HDEL', schedules, name) == 1 and 'REMOVED' or 'UNKNOWN'
