#!lua
-- lead.lua: of all processes that sample, one writes the history. Whoever asks first gets the lease, its holder prolongs it.
-- KEYS writer STRING
-- ARGV token, leaseMs
-- Returns 'LEADS' or 'FOLLOWS'
local holder = redis.call('GET', writer)
if holder and holder ~= token then return 'FOLLOWS' end
redis.call('SET', writer, token, 'PX', leaseMs)
return 'LEADS'
