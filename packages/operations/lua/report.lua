#!lua flags=allow-oom
-- report.lua: how far an operation is, from whoever runs it; and the answer is whether somebody wants it to stop. What has ended stays as
-- it is. Repeating it changes nothing.
-- KEYS record HASH
-- ARGV state, moved, total, nowMs, keepMs
-- state: 'running', 'done' or 'cancelled'; total: '' while it is not known
-- Returns 'GO', 'STOP', 'ENDED' or 'UNKNOWN'
local was, stop = unpack(redis.call('HMGET', record, 'state', 'stop'))
if not was then return 'UNKNOWN' end
if was ~= 'waiting' and was ~= 'running' then return 'ENDED' end
redis.call('HSET', record, 'state', state, 'moved', moved)
if total ~= '' then redis.call('HSET', record, 'total', total) end
if state ~= 'running' then redis.call('HSET', record, 'endedMs', nowMs) end
redis.call('PEXPIRE', record, keepMs)
return stop and 'STOP' or 'GO'
