#!lua
-- chainKeep.lua: writes down what a chain is to become, before anything of it exists. Until the chain is complete a sweep
-- looks after it; the specification that came first under a name counts.
-- KEYS chains HASH, chainsDue ZSET
-- ARGV chain, spec, pauseMs
-- Returns 'KEPT' or 'KNOWN'
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local is_new = redis.call('HSETNX', chains, chain, string.format('%.0f ', now) .. spec)
redis.call('ZADD', chainsDue, now + pauseMs, chain)
return is_new == 1 and 'KEPT' or 'KNOWN'
