#!lua
-- keep.lua: writes down how it stands with one threshold. A process that lost the lease changes nothing. Repeating it writes the same.
-- KEYS judge STRING, standings HASH
-- ARGV token, name, standing
-- Returns 'OK' or 'LOST'
if redis.call('GET', judge) ~= token then return 'LOST' end
redis.call('HSET', standings, name, standing)
return 'OK'
