#!lua flags=allow-oom
-- renew.lua: completing takes longer; the lease goes on if it is still ours. A lease given back ends at once.
-- KEYS state HASH, attention ZSET
-- ARGV id, fence, leaseMs
-- Returns 'OK', or 'LEASE_LOST'
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local known = redis.call('HMGET', state, 'status', 'fence')
if known[1] ~= 'COMPLETING' or known[2] ~= fence then return 'LEASE_LOST' end
redis.call('HSET', state, 'lease_until', string.format('%.0f', now + leaseMs))
redis.call('ZADD', attention, now + leaseMs, id)
return 'OK'
