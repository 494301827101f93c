#!lua flags=allow-oom
-- open.lua: a worker session begins. Its id is new for ever. The description is at least 65 bytes long, which keeps the
-- active hash out of the compact encoding, where every look-up would walk through all of it.
-- KEYS cfg HASH, sessions ZSET, rescuing ZSET, active HASH, lanes HASH
-- ARGV session, leaseMs, description, draining
-- draining: '1' when an operator wished that of a session which this one replaces
-- Returns {'OK', now ms} or {'USED'}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if redis.call('ZSCORE', rescuing, session) then return { 'USED' } end
-- A late copy of this call must not make the lanes forget what they did, nor extend a lease.
if redis.call('ZSCORE', sessions, session) then return { 'OK', now } end
survive_outage(now, tonumber(leaseMs))
redis.call('ZADD', sessions, now + leaseMs, session)
redis.call('HSET', active .. session, '#', description, '#0', '0:', '#1', '0:')
if draining == '1' then redis.call('HSET', lanes .. session, 'drain', 'draining') end
redis.call('HSET', cfg, 'renewed', now)
return { 'OK', now }
