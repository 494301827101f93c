#!lua
-- join.lua: values that were filled join the index of their group, under the generation that they carry, so that somebody can remove
-- them when it is over. Members whose values have expired leave: more than come, so that the index holds what lives and little more.
-- One that is full takes nobody else; their values end with their TTL. Repeating it changes nothing.
-- KEYS indexes SET, members ZSET
-- ARGV generation, entries, most
-- entries: JSON [[name of a value, when it expires], …]
-- Returns how many are new in the index
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local list = cjson.decode(entries)
local expired = redis.call('ZRANGE', members, '-inf', nowMs, 'BYSCORE', 'LIMIT', 0, 2 * #list + 8)
if #expired > 0 then redis.call('ZREM', members, unpack(expired)) end
local room = most - redis.call('ZCARD', members)
local joined, lastMs = 0, nowMs
for _, entry in ipairs(list) do
  local name, untilMs = entry[1], entry[2]
  if joined < room then
    joined = joined + redis.call('ZADD', members, untilMs, name)
  else
    redis.call('ZADD', members, 'XX', untilMs, name)
  end
  lastMs = math.max(lastMs, untilMs)
end
redis.call('SADD', indexes, generation)
for _, key in ipairs({ indexes, members }) do
  if redis.call('PTTL', key) < lastMs - nowMs then redis.call('PEXPIRE', key, lastMs - nowMs) end
end
return joined
