#!lua flags=no-writes
-- crew.lua: the sessions of a partition that hold a lease, with what their workers say about themselves and how many jobs they hold.
-- KEYS sessions ZSET, active HASH, lanes HASH
-- ARGV limit
-- Returns {now ms, sessions in all, {session, end of the lease, description, jobs held, 'asked', 'draining', 'drained' or ''}, …}
local time = redis.call('TIME')
local answer = { time[1] * 1000 + math.floor(time[2] / 1000), redis.call('ZCARD', sessions) }
local page = redis.call('ZRANGE', sessions, 0, limit - 1, 'WITHSCORES')
for i = 1, #page, 2 do
  local held = active .. page[i]
  local description, wish = redis.call('HGET', held, '#') or '', redis.call('HGET', lanes .. page[i], 'drain') or ''
  answer[#answer + 1] = { page[i], page[i + 1], description, (count_held(held, META_FIELDS)), wish }
end
return answer
