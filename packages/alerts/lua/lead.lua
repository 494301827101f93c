#!lua
-- lead.lua: of all processes one judges. Whoever asks first gets the lease, its holder prolongs it.
-- KEYS judge STRING
-- ARGV token, leaseMs
-- Returns 'LEADS' or 'FOLLOWS'
local holder = redis.call('GET', judge)
if holder and holder ~= token then return 'FOLLOWS' end
redis.call('SET', judge, token, 'PX', leaseMs)
return 'LEADS'
