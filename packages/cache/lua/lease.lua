#!lua
-- lease.lua: takes the right to fill one key. Whoever has it loads; everybody else waits for what it brings. A repetition after a
-- lost reply finds its own token and gets the same answer. With `force` the lease is taken from whoever has it, whose fill is
-- then refused: a value that is set by hand is newer than one that is being loaded.
-- KEYS lease STRING
-- ARGV token, leaseMs, force
-- Returns 'LEASED', or for how many more milliseconds somebody else has it
local holder = redis.call('GET', lease)
if holder and holder ~= token and force ~= '1' then return redis.call('PTTL', lease) end
redis.call('SET', lease, token, 'PX', leaseMs)
return 'LEASED'
