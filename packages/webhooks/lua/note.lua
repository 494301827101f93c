#!lua
-- note.lua: writes down how a delivery of a webhook went, in place of what was known of it before, and forgets the oldest. Repeating it
-- writes the same.
-- KEYS deliveries HASH, order ZSET
-- ARGV id, atMs, note, keep, keepMs
-- Returns how many are known
redis.call('HSET', deliveries, id, note)
redis.call('ZADD', order, atMs, id)
local excess = redis.call('ZCARD', order) - keep
if excess > 0 then
  local oldest = redis.call('ZRANGE', order, 0, excess - 1)
  redis.call('ZREM', order, unpack(oldest))
  redis.call('HDEL', deliveries, unpack(oldest))
end
redis.call('PEXPIRE', deliveries, keepMs)
redis.call('PEXPIRE', order, keepMs)
return redis.call('ZCARD', order)
