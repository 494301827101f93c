#!lua flags=no-writes
-- causes.lua: what is known about causes of death, from the figures that are kept with every burial: the time it takes does not
-- depend on how many died.
-- KEYS deadGroup ZSET, deadGroups ZSET, deadTitles HASH
-- ARGV prints
-- prints: msgpack {fingerprint, …}
-- Returns {{fingerprint, title, count, first died ms, last died ms}, …}; causes of which nobody is dead are left out
local answer = {}
for _, print in ipairs(cmsgpack.unpack(prints)) do
  local count = redis.call('ZSCORE', deadGroups, print)
  if count then
    local key = deadGroup .. print
    local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]
    local last = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]
    answer[#answer + 1] = { print, redis.call('HGET', deadTitles, print), count, first, last }
  end
end
return answer
