#!lua flags=allow-oom
-- count.lua: how many jobs are in each state, and how old the oldest waiting one is. Constant time but for the number of
-- sessions. Reads only. (`ended` counts the memories that are kept.)
-- The oldest is looked for where it should be: at the head of each list, and of the groups whose turn comes next.
-- KEYS cfg HASH, sessions ZSET, rescuing ZSET, active HASH, jobs HASH, wait0 LIST, wait1 LIST, wait2 LIST, wait3 LIST, wait4 LIST
-- KEYS wait5 LIST, delayed ZSET, suspects LIST, inbox LIST, blocked HASH, dead ZSET, ended ZSET, group ZSET, fresh LIST, ring LIST
-- ARGV none
-- Returns {now ms, jobs, waiting per priority (6), due, delayed, suspects, inbox, blocked by chains, held by limits, tombstones,
--   active, sessions, dead, ended, headers of the oldest, next due ms}
local HEADS_LOOKED_AT = 20 -- ids per list or groups per ring; tombstones are passed over
local HEADER_BYTES = 8
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local conf = redis.call('HMGET', cfg, 'held', 'tombstones', 'loose', unpack(BALED))
local running, workers = 0, 0
local known = redis.call('HLEN', jobs) - (conf[3] or 0)
for key, fields in pairs({ [sessions] = META_FIELDS, [rescuing] = 0 }) do
  for _, session in ipairs(redis.call('ZRANGE', key, 0, -1)) do
    workers = workers + 1
    local holds, stored = count_held(active .. session, fields)
    running = running + holds
    known = known + holds - stored
  end
end
local heads, lengths = {}, {}
local function first_of(ids)
  for _, id in ipairs(ids) do
    local packed = redis.call('HGET', jobs, id)
    if packed and #packed >= HEADER_BYTES then
      heads[#heads + 1] = packed:sub(1, HEADER_BYTES)
      return
    end
  end
end
for i, key in ipairs({ wait0, wait1, wait2, wait3, wait4, wait5 }) do
  local baled = tonumber(conf[3 + i] or 0)
  lengths[i] = redis.call('LLEN', key) + baled
  known = known + baled
  first_of(redis.call('LRANGE', key, 0, HEADS_LOOKED_AT - 1))
end
first_of(redis.call('LRANGE', suspects, 0, 0))
first_of(redis.call('ZRANGE', delayed, '-inf', now, 'BYSCORE', 'LIMIT', 0, 1))
for _, key in ipairs({ fresh, ring }) do
  for _, name in ipairs(redis.call('LRANGE', key, 0, HEADS_LOOKED_AT - 1)) do
    first_of(redis.call('ZRANGE', group .. name, 0, 0))
  end
end
local due = redis.call('ZCOUNT', delayed, '-inf', now)
return {
  now, known, lengths, due, redis.call('ZCARD', delayed) - due, redis.call('LLEN', suspects),
  redis.call('LLEN', inbox), redis.call('HLEN', blocked), tonumber(conf[1] or 0), tonumber(conf[2] or 0), running, workers,
  redis.call('ZCARD', dead), redis.call('ZCARD', ended), heads,
  tonumber(redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2] or 0),
}
