#!lua flags=allow-oom
-- chainDrop.lua: a chain is complete, or given up: its specification is not needed any more.
-- KEYS chains HASH, chainsDue ZSET
-- ARGV chain
-- Returns 'DROPPED' or 'UNKNOWN'
redis.call('ZREM', chainsDue, chain)
return redis.call('HDEL', chains, chain) == 1 and 'DROPPED' or 'UNKNOWN'
