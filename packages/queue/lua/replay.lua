#!lua flags=allow-oom
-- replay.lua: dead letters become waiting jobs again, behind those that wait, with their attempts counted anew and their history
-- kept. A letter whose unique key another job holds by now stays dead: two jobs with one key are never there at once.
-- KEYS cfg HASH, jobs HASH, wake LIST, wait0 LIST, wait1 LIST, wait2 LIST, wait3 LIST, wait4 LIST, wait5 LIST, delayed ZSET
-- KEYS groups HASH, group ZSET, fresh LIST, ring LIST, groupActive HASH, unique STRING, ended ZSET, results HASH
-- KEYS dependents HASH, chained LIST, dead ZSET, deadInfo HASH, deadGroup ZSET, deadGroups ZSET, deadTitles HASH
-- KEYS tries LIST, progress HASH, logs LIST, stats HASH, events STREAM, replays HASH
-- ARGV operation, ids
-- ids: msgpack {id, …}; none just begins the operation
-- Returns {moved by the operation so far, when it began in ms}
local began, moved = recall_operation(now_ms())
local before = moved

for _, id in ipairs(cmsgpack.unpack(ids)) do
  local died = redis.call('ZSCORE', dead, id)
  local packed = died and tonumber(died) <= began and redis.call('HGET', jobs, id)
  if packed and takes_key(id, options_of(packed)) then
    exhume(id)
    local again = with_header(packed, packed:byte(1), 0, 0)
    redis.call('HSET', jobs, id, again)
    place(id, again, false)
    tell('replayed', id)
    moved = moved + 1
  end
end
record_operation(began, moved)
if moved > before then rouse() end
return { moved, began }
