#!lua flags=allow-oom
-- renew.lua: the heartbeat. Extends one deadline, whatever the number of jobs. A session whose deadline has passed is
-- refused (somebody may already be reading its jobs), except in the grace that follows an outage.
-- KEYS cfg HASH, sessions ZSET
-- ARGV session, leaseMs
-- Returns {'OK', now ms}, {'EXPIRED', now ms} or {'LEASE_LOST', now ms}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local deadline = redis.call('ZSCORE', sessions, session)
if not deadline then return { 'LEASE_LOST', now } end
survive_outage(now, tonumber(leaseMs))
if tonumber(deadline) < now and not in_grace(now) then return { 'EXPIRED', now } end
redis.call('ZADD', sessions, 'XX', now + leaseMs, session)
redis.call('HSET', cfg, 'renewed', now)
return { 'OK', now }
