#!lua flags=allow-oom
-- forget.lua: nothing of an ended upload is left to clean up, so nobody needs to look at it again.
-- KEYS state HASH, attempts HASH, attention ZSET
-- ARGV id
-- Returns 'OK', or 'OPEN' when it has not ended
local status = redis.call('HGET', state, 'status')
if status == 'PENDING' or status == 'UPLOADING' or status == 'COMPLETING' then return 'OPEN' end
redis.call('DEL', attempts)
redis.call('ZREM', attention, id)
return 'OK'
