#!lua flags=allow-oom
-- discard.lua: dead letters are given up for good. They count as cancelled.
-- KEYS cfg HASH, jobs HASH, wake LIST, wait0 LIST, wait1 LIST, wait2 LIST, wait3 LIST, wait4 LIST, wait5 LIST, delayed ZSET
-- KEYS groups HASH, group ZSET, fresh LIST, ring LIST, groupActive HASH, unique STRING, ended ZSET, results HASH
-- KEYS dependents HASH, chained LIST, dead ZSET, deadInfo HASH, deadGroup ZSET, deadGroups ZSET, deadTitles HASH
-- KEYS tries LIST, progress HASH, logs LIST, stats HASH, events STREAM, replays HASH
-- ARGV operation, ids
-- ids: msgpack {id, …}; none just begins the operation
-- Returns {moved by the operation so far, when it began in ms}
local now = now_ms()
local began, moved = recall_operation(now)
for _, id in ipairs(cmsgpack.unpack(ids)) do
  local died = redis.call('ZSCORE', dead, id)
  local packed = died and tonumber(died) <= began and redis.call('HGET', jobs, id)
  if packed then
    exhume(id)
    finish(now, id, packed, 'cancelled', 0, '')
    moved = moved + 1
  end
end
record_operation(began, moved)
return { moved, began }
