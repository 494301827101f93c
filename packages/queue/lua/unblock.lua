#!lua flags=allow-oom
-- unblock.lua: a job learns that one of those it waits for has ended. Delivering the same notice twice changes nothing, nor
-- does a notice from a job that it does not wait for.
-- The policy says what a dependency that died or was cancelled means: 'cancel' ends this job too, 'run' treats it as done,
-- 'wait' goes on waiting for a replay (a cancelled dependency can never come, so it ends this job).
-- KEYS cfg HASH, jobs HASH, wake LIST, wait0 LIST, wait1 LIST, wait2 LIST, wait3 LIST, wait4 LIST, wait5 LIST, delayed ZSET
-- KEYS groups HASH, group ZSET, fresh LIST, ring LIST, groupActive HASH, unique STRING, ended ZSET, results HASH
-- KEYS dependents HASH, chained LIST, blocked HASH, deps SET, dead ZSET, deadInfo HASH, deadGroup ZSET, deadGroups ZSET
-- KEYS deadTitles HASH, tries LIST, progress HASH, logs LIST, stats HASH, events STREAM
-- ARGV id, ref, outcome
-- Returns 'RELEASED', 'CANCELLED', 'WAITING' or 'UNKNOWN' (it waits for nobody)
local policy = redis.call('HGET', blocked, id)
if not policy then return 'UNKNOWN' end
if redis.call('SISMEMBER', deps .. id, ref) == 0 then return 'WAITING' end
local failed = outcome ~= 'done' and policy ~= 'run'
if failed and policy == 'wait' and outcome == 'dead' then return 'WAITING' end
if failed then
  redis.call('HDEL', blocked, id)
  redis.call('DEL', deps .. id)
  finish(now_ms(), id, redis.call('HGET', jobs, id), 'cancelled', 3600000, '')
  return 'CANCELLED'
end
redis.call('SREM', deps .. id, ref)
if redis.call('SCARD', deps .. id) > 0 then return 'WAITING' end
redis.call('HDEL', blocked, id)
redis.call('ZADD', delayed, 0, id)
rouse()
return 'RELEASED'
