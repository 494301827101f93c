#!lua flags=allow-oom
-- ending.lua: the upload is about to end. Whoever looks at it next goes on if this process dies before the end is written.
-- KEYS state HASH, attention ZSET
-- ARGV id, status, code, reason, lookMs
-- Returns 'OK', 'ENDED' or 'GONE'
local known = redis.call('HGET', state, 'status')
if not known then return 'GONE' end
if known ~= 'PENDING' and known ~= 'UPLOADING' and known ~= 'COMPLETING' then return 'ENDED' end
redis.call('HSET', state, 'ending', status, 'ending_code', code, 'ending_reason', reason)
local time = redis.call('TIME')
redis.call('ZADD', attention, 'LT', time[1] * 1000 + math.floor(time[2] / 1000) + lookMs, id)
return 'OK'
