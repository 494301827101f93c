#!lua
-- tick.lua: a schedule fires. However many schedulers see that it is due, the one whose `due` is still the stored one
-- adds the jobs and moves the schedule on, in one step.
-- KEYS cfg HASH, jobs HASH, wake LIST, wait0 LIST, wait1 LIST, wait2 LIST, wait3 LIST, wait4 LIST, wait5 LIST, delayed ZSET
-- KEYS groups HASH, group ZSET, fresh LIST, ring LIST, groupActive HASH, unique STRING, ended ZSET, schedules HASH, ticks ZSET
-- KEYS events STREAM
-- ARGV name, due, next, ids, packed
-- ids: msgpack {id, …}, one per tick, of jobs that are otherwise the same; next: '' when the schedule has no further tick
-- Returns {'FIRED', now ms}, {'LATE', now ms} (somebody else did it) or {'EARLY', now ms}
local now = now_ms()
local stored = redis.call('ZSCORE', ticks, name)
if not stored or tonumber(stored) ~= tonumber(due) then return { 'LATE', now } end
if tonumber(due) > now then return { 'EARLY', now } end
local list = cmsgpack.unpack(ids)
local options = #list > 0 and options_of(packed) or {}
local length = redis.call('HGET', cfg, 'events')

-- The id says which tick it is: a schedule that was removed and set again does not fire twice for one tick.
local function is_new(id)
  return redis.call('HEXISTS', jobs, id) == 0 and not redis.call('ZSCORE', ended, id)
end

-- While another job holds the unique key the tick makes no job: that is how a schedule never overlaps itself.
local function takes_key(id)
  if not options.u then return true end
  if options.uw then return redis.call('SET', unique .. options.u, id, 'NX', 'PX', options.uw) end
  return redis.call('SET', unique .. options.u, id, 'NX')
end

for _, id in ipairs(list) do
  if is_new(id) and takes_key(id) then
    redis.call('HSET', jobs, id, packed)
    place(id, packed, false)
    if length then redis.call('XADD', events, 'MAXLEN', '~', length, '*', 'type', 'added', 'id', id) end
  end
end
if next == '' then
  redis.call('ZREM', ticks, name)
  redis.call('HDEL', schedules, name)
else
  redis.call('ZADD', ticks, next, name)
end
if #list > 0 then rouse() end
return { 'FIRED', now }
