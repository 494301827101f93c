#!lua flags=allow-oom
-- renew.lua: the load goes on. An invalidation took the lease away, and it does not come back.
-- KEYS lease STRING
-- ARGV token, leaseMs
-- Returns 'RENEWED' or 'LOST'
if redis.call('GET', lease) ~= token then return 'LOST' end
redis.call('PEXPIRE', lease, leaseMs)
return 'RENEWED'
