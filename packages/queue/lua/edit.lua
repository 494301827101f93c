#!lua
-- edit.lua: replaces the payload of a dead letter, if it is still the one that the editor saw. Repeating an edit changes nothing.
-- KEYS jobs HASH, dead ZSET
-- ARGV id, seen, replacement
-- Returns 'EDITED', 'UNKNOWN' or 'CHANGED'
if not redis.call('ZSCORE', dead, id) then return 'UNKNOWN' end
local stored = redis.call('HGET', jobs, id)
if stored == replacement then return 'EDITED' end
if stored ~= seen then return 'CHANGED' end
redis.call('HSET', jobs, id, replacement)
return 'EDITED'
