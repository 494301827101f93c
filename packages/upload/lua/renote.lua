#!lua flags=allow-oom
-- renote.lua: the bytes of a small file are still coming. Nobody has to look at its note for as long again.
-- KEYS state HASH, attention ZSET
-- ARGV id, idleMs
-- Returns 'OK', or 'GONE' when somebody has taken the note for old
local known = redis.call('HMGET', state, 'status', 'ending')
if known[1] ~= 'UPLOADING' or known[2] then return 'GONE' end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', state, 'updated_at', string.format('%.0f', now))
redis.call('ZADD', attention, 'XX', string.format('%.0f', now + idleMs), id)
return 'OK'
