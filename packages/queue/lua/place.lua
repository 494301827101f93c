-- place.lua (prelude): where a job goes when it becomes ready, and what its group does when it leaves.
--
-- A packed job is bytes: 1 flags, 2 failed attempts, 3 crashes * 16 + priority, 4-8 creation time, then
-- (flag 1) two bytes of length and a JSON of options, then the payload, which Lua never decodes.
-- Flags: 1 options, 2 binary payload, 4 payload is a foreign message, 8 needs settle.lua to end,
-- 16 has traces (tries, progress, logs), 32 belongs to a group, 64 several jobs in one (bale.lua). 255 alone is the tombstone of
-- a cancelled job.
--
-- Jobs without a group wait in one list per priority, some of them in bales. Jobs of a group wait in the group's own sorted set
-- (priority, then order); a group with waiting jobs is either 'ready' (listed in `fresh` or `ring`, served in turn),
-- 'full' (at its concurrency limit) or 'slow' (at its rate limit, parked until a time).
local waits = { [0] = wait0, wait1, wait2, wait3, wait4, wait5 }
local TOMBSTONE = 255
local PRIORITY_SPAN = 1e12 -- more than the jobs that one group sees in its life

local function has(flags, bit) return math.floor(flags / bit) % 2 == 1 end

local function options_of(packed)
  if not has(packed:byte(1), 1) then return {} end
  local length = packed:byte(9) * 256 + packed:byte(10)
  return cjson.decode(packed:sub(11, 10 + length))
end

local function with_header(packed, flags, attempts, crashes)
  local priority = packed:byte(3) % 16
  return string.char(flags, math.min(attempts, 255), math.min(crashes, 15) * 16 + priority) .. packed:sub(4)
end

local function with_flag(packed, bit)
  local flags = packed:byte(1)
  if has(flags, bit) then return packed end
  return string.char(flags + bit) .. packed:sub(2)
end

-- One token wakes one sleeper; whoever takes it passes it on while work remains.
local function rouse()
  if redis.call('EXISTS', wake) == 0 then redis.call('RPUSH', wake, 1) end
end

local function place(id, packed, returned)
  local priority = packed:byte(3) % 16
  if not has(packed:byte(1), 32) then
    redis.call(returned and 'LPUSH' or 'RPUSH', waits[priority], id)
    return
  end
  local name = options_of(packed).g
  local order = returned and 0 or redis.call('HINCRBY', cfg, 'order', 1)
  redis.call('ZADD', group .. name, priority * PRIORITY_SPAN + order, id)
  local state = redis.call('HGET', groups, name)
  if not state then
    redis.call('HSET', groups, name, 'ready')
    redis.call('RPUSH', fresh, name)
  elseif state ~= 'ready' then
    redis.call('HINCRBY', cfg, 'held', 1)
  end
end

local function open_group(name)
  redis.call('HSET', groups, name, 'ready')
  redis.call('RPUSH', ring, name)
  -- All of them may have been cancelled; a negated nought would be "-0", which Redis refuses.
  redis.call('HINCRBY', cfg, 'held', 0 - redis.call('ZCARD', group .. name))
end

local function shut_group(name, state)
  redis.call('HSET', groups, name, state)
  redis.call('HINCRBY', cfg, 'held', redis.call('ZCARD', group .. name))
end

-- A job stopped being active: its group, or a queue at its limit, may have room again.
local function free(packed)
  if redis.call('HEXISTS', cfg, 'rules') == 1 then rouse() end
  if not has(packed:byte(1), 32) then return end
  local name = options_of(packed).g
  if redis.call('HINCRBY', groupActive, name, -1) <= 0 then redis.call('HDEL', groupActive, name) end
  if redis.call('HGET', groups, name) == 'full' then
    open_group(name)
    rouse()
  end
end

-- Puts a job on the timeline. Score 0 means "at once, before others"; the next claim places it.
local function set_due(id, due)
  redis.call('ZADD', delayed, due, id)
  if redis.call('ZRANGE', delayed, 0, 0)[1] == id then rouse() end
end

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000), time[1] * 1000000 + time[2]
end
