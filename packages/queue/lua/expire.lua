#!lua flags=allow-oom
-- expire.lua: drops the oldest dead letters beyond what the queue's retention allows; without one, nothing. They count as
-- cancelled. Bounded; called every few seconds by a worker.
-- KEYS cfg HASH, jobs HASH, wake LIST, wait0 LIST, wait1 LIST, wait2 LIST, wait3 LIST, wait4 LIST, wait5 LIST, delayed ZSET
-- KEYS groups HASH, group ZSET, fresh LIST, ring LIST, groupActive HASH, unique STRING, ended ZSET, results HASH
-- KEYS dependents HASH, chained LIST, dead ZSET, deadInfo HASH, deadGroup ZSET, deadGroups ZSET, deadTitles HASH
-- KEYS tries LIST, progress HASH, logs LIST, stats HASH, events STREAM
-- ARGV limit
-- Returns the number dropped
local retention = redis.call('HGET', cfg, 'retention')
if not retention then return 0 end
local keep = cjson.decode(retention)
local now = now_ms()
local most = tonumber(limit)
local surplus = 0
if keep.maxAgeMs then surplus = redis.call('ZCOUNT', dead, '-inf', now - keep.maxAgeMs) end
if keep.maxCount then surplus = math.max(surplus, redis.call('ZCARD', dead) - keep.maxCount) end
if surplus <= 0 then return 0 end
local old = redis.call('ZRANGE', dead, 0, math.min(surplus, most) - 1)
for _, id in ipairs(old) do
  local packed = redis.call('HGET', jobs, id)
  exhume(id)
  finish(now, id, packed, 'cancelled', 0, '')
end
return #old
