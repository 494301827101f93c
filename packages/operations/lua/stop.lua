#!lua flags=allow-oom
-- stop.lua: somebody wants an operation to stop. Whoever runs it hears of it with its next report.
-- KEYS record HASH
-- ARGV by
-- Returns 'STOPPING', 'ENDED' or 'UNKNOWN'
local was = redis.call('HGET', record, 'state')
if not was then return 'UNKNOWN' end
if was ~= 'waiting' and was ~= 'running' then return 'ENDED' end
redis.call('HSETNX', record, 'stop', by)
return 'STOPPING'
