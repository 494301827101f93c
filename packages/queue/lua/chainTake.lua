#!lua flags=allow-oom
-- chainTake.lua: which half-made chains need a look. Each one that is taken is nobody else's for `pauseMs`.
-- KEYS chains HASH, chainsDue ZSET
-- ARGV limit, pauseMs
-- Returns {now ms, chain, when it was kept and its specification, …}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local answer = { now }
for _, chain in ipairs(redis.call('ZRANGE', chainsDue, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)) do
  local kept = redis.call('HGET', chains, chain)
  if kept then
    redis.call('ZADD', chainsDue, now + pauseMs, chain)
    answer[#answer + 1] = chain
    answer[#answer + 1] = kept
  else
    redis.call('ZREM', chainsDue, chain)
  end
end
return answer
