#!lua flags=allow-oom
-- renew.lua: the heartbeat. Extends one deadline, whatever the number of jobs. A session whose deadline has passed is
-- refused (somebody may already be reading its jobs), except in the grace that follows an outage.
-- It also brings the worker the wish of an operator that it claim nothing more (drain.lua), every time as long as the wish is there, and
-- takes back what became of it.
-- KEYS cfg HASH, sessions ZSET, lanes HASH
-- ARGV session, leaseMs, drained
-- drained: '1' when the worker claims nothing and runs nothing
-- Returns {'OK', now ms, 1 when it should drain else 0}, {'EXPIRED', now ms} or {'LEASE_LOST', now ms}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local deadline = redis.call('ZSCORE', sessions, session)
if not deadline then return { 'LEASE_LOST', now } end
survive_outage(now, tonumber(leaseMs))
if tonumber(deadline) < now and not in_grace(now) then return { 'EXPIRED', now } end
redis.call('ZADD', sessions, 'XX', now + leaseMs, session)
redis.call('HSET', cfg, 'renewed', now)
local wish = redis.call('HGET', lanes .. session, 'drain')
if not wish then return { 'OK', now, 0 } end
local state = drained == '1' and 'drained' or 'draining'
if wish ~= state then redis.call('HSET', lanes .. session, 'drain', state) end
return { 'OK', now, 1 }
