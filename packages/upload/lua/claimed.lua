#!lua
-- claimed.lua: the records have set aside so many bytes of the tenant's quota for this upload.
-- KEYS state HASH
-- ARGV bytes
-- Returns 'OK', or 'GONE'
local known = redis.call('HMGET', state, 'status', 'claimed_bytes')
if not known[1] then return 'GONE' end
if tonumber(bytes) > tonumber(known[2] or '0') then redis.call('HSET', state, 'claimed_bytes', bytes) end
return 'OK'
