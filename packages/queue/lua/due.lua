#!lua flags=no-writes
-- due.lua: the schedules that are due, longest due first, by the clock that decides.
-- KEYS schedules HASH, ticks ZSET
-- ARGV limit
-- Returns {now ms, name, due ms, spec or '', name, due ms, spec or '', …}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local answer = { now }
local due = redis.call('ZRANGE', ticks, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit, 'WITHSCORES')
for i = 1, #due, 2 do
  answer[#answer + 1] = due[i]
  answer[#answer + 1] = due[i + 1]
  answer[#answer + 1] = redis.call('HGET', schedules, due[i]) or ''
end
return answer
