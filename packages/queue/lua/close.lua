#!lua flags=allow-oom
-- close.lua: a worker session ends in an orderly way: it holds nothing any more.
-- KEYS cfg HASH, sessions ZSET, active HASH, lanes HASH, wake LIST
-- ARGV session
-- Returns 'CLOSED', 'BUSY' (it still holds jobs) or 'LEASE_LOST'
if not redis.call('ZSCORE', sessions, session) then return 'LEASE_LOST' end
if count_held(active .. session, META_FIELDS) > 0 then return 'BUSY' end
redis.call('ZREM', sessions, session)
redis.call('DEL', active .. session, lanes .. session)
if redis.call('HGET', cfg, 'watch') == session then redis.call('HDEL', cfg, 'watch') end
if redis.call('EXISTS', wake) == 0 then redis.call('RPUSH', wake, 1) end
return 'CLOSED'
