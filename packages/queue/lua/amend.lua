#!lua flags=allow-oom
-- amend.lua: a dead letter gets another payload and becomes a waiting job again: both, or neither. Refused if it is no longer the one that
-- the editor saw. It is an operation of one letter: a call that is repeated after a lost reply finds its record, whatever became of the
-- job meanwhile.
-- KEYS cfg HASH, jobs HASH, wake LIST, wait0 LIST, wait1 LIST, wait2 LIST, wait3 LIST, wait4 LIST, wait5 LIST, delayed ZSET
-- KEYS groups HASH, group ZSET, fresh LIST, ring LIST, groupActive HASH, unique STRING, ended ZSET, results HASH
-- KEYS dependents HASH, chained LIST, dead ZSET, deadInfo HASH, deadGroup ZSET, deadGroups ZSET, deadTitles HASH
-- KEYS tries LIST, progress HASH, logs LIST, stats HASH, events STREAM, replays HASH
-- ARGV operation, id, seen, replacement
-- Returns 'REPLAYED', 'UNKNOWN', 'CHANGED' or 'TAKEN' (another job holds its unique key)
local began, moved = recall_operation(now_ms())
if moved > 0 then return 'REPLAYED' end
if not redis.call('ZSCORE', dead, id) then return 'UNKNOWN' end
if redis.call('HGET', jobs, id) ~= seen then return 'CHANGED' end
if not takes_key(id, options_of(seen)) then return 'TAKEN' end
exhume(id)
local again = with_header(replacement, replacement:byte(1), 0, 0)
redis.call('HSET', jobs, id, again)
place(id, again, false)
tell('replayed', id)
record_operation(began, 1)
rouse()
return 'REPLAYED'
