#!lua
-- begin.lua: an operation is written down, once; whoever comes second changes nothing. Of very many the oldest leave the list, and their
-- records end by themselves.
-- KEYS list ZSET, record HASH
-- ARGV id, request, createdMs, keepMs, most
-- request: JSON
-- Returns 'BEGUN' or 'KNOWN'
if redis.call('EXISTS', record) == 1 then return 'KNOWN' end
redis.call('HSET', record, 'request', request, 'state', 'waiting', 'createdMs', createdMs, 'moved', 0)
redis.call('PEXPIRE', record, keepMs)
redis.call('ZADD', list, createdMs, id)
redis.call('ZREMRANGEBYRANK', list, 0, -most - 1)
redis.call('PEXPIRE', list, keepMs)
return 'BEGUN'
