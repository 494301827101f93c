#!lua
-- initiate.lua: an upload begins. Done twice it changes nothing. The state of an open upload does not run out: it holds what the upload
-- has reserved, and whoever looks at it next gives that back, however long nobody looked.
-- KEYS state HASH, attention ZSET
-- ARGV id, fields, idleMs
-- Returns 'OK', or 'EXISTS'
if redis.call('EXISTS', state) == 1 then return 'EXISTS' end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', state, 'created_at', now, 'updated_at', now, unpack(cjson.decode(fields)))
redis.call('ZADD', attention, now + idleMs, id)
return 'OK'
