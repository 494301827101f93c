#!lua flags=allow-oom
-- forget.lua: an ended upload was cleaned up. What a process had sent to the store before it died may still arrive there, so
-- somebody looks once more when that is over; after that nobody needs to.
-- KEYS state HASH, attempts HASH, attention ZSET
-- ARGV id, lateMs
-- Returns 'OK', 'LATER' when there will be another look, or 'OPEN' when it has not ended
local known = redis.call('HMGET', state, 'status', 'cleaned_at')
local status, cleaned = known[1], tonumber(known[2] or '')
if status == 'PENDING' or status == 'UPLOADING' or status == 'COMPLETING' then return 'OPEN' end
redis.call('DEL', attempts)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if status and not cleaned then
  cleaned = now
  redis.call('HSET', state, 'cleaned_at', string.format('%.0f', now))
end
if status and now < cleaned + lateMs then
  redis.call('ZADD', attention, string.format('%.0f', cleaned + lateMs), id)
  return 'LATER'
end
redis.call('ZREM', attention, id)
return 'OK'
