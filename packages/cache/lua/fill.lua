#!lua
-- fill.lua: what was loaded becomes the value, if the lease under which it was loaded still stands. An invalidation during the load
-- has removed the lease, so that a slow loader never brings back what was just invalidated.
-- KEYS value STRING, lease STRING
-- ARGV token, envelope, keepMs
-- Returns 'FILLED', or 'LOST' (also to a repetition of a fill that was done)
if redis.call('GET', lease) ~= token then return 'LOST' end
redis.call('SET', value, envelope, 'PX', keepMs)
redis.call('DEL', lease)
return 'FILLED'
