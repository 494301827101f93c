#!lua flags=allow-oom
-- release.lua: nothing came of the load; the next reader may try.
-- KEYS lease STRING
-- ARGV token
-- Returns 'RELEASED' or 'LOST'
if redis.call('GET', lease) ~= token then return 'LOST' end
redis.call('DEL', lease)
return 'RELEASED'
