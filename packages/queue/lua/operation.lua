-- operation.lua (prelude): a replay or a discard of many letters, which may stop anywhere and go on under its name.
--
-- Its record says when it began and how many letters it has moved. What died after its beginning is not its business: a letter
-- that was replayed and died again is not replayed in a circle. The count is written in the step that moves, so that a call
-- which is repeated after a lost reply, and a second run, count nothing twice.
local OPERATIONS_KEPT = 1000

local function forget_oldest_operation()
  local all = redis.call('HGETALL', replays)
  local oldest, began = nil, math.huge
  for i = 1, #all, 2 do
    local at = tonumber(all[i + 1]:match('^%d+'))
    if at < began then oldest, began = all[i], at end
  end
  redis.call('HDEL', replays, oldest)
end

-- When it began, and how many letters it has moved.
local function recall_operation(now)
  local record = redis.call('HGET', replays, operation)
  if record then
    local began, moved = record:match('^(%d+) (%d+)$')
    return tonumber(began), tonumber(moved)
  end
  if redis.call('HLEN', replays) >= OPERATIONS_KEPT then forget_oldest_operation() end
  -- A clock that was put back must not hide the letters of the time before.
  local newest = redis.call('ZRANGE', dead, -1, -1, 'WITHSCORES')[2]
  return math.max(now, tonumber(newest or 0)), 0
end

local function record_operation(began, moved)
  redis.call('HSET', replays, operation, string.format('%.0f %.0f', began, moved))
end

-- Two jobs with one unique key are never there at once: a letter comes back only if nobody holds its key, which it then holds.
local function takes_key(id, options)
  if not options.u or options.uw then return true end
  return redis.call('SET', unique .. options.u, id, 'NX') or redis.call('GET', unique .. options.u) == id
end
