-- lease.lua (prelude): leases of worker sessions, and the fresh one that everybody gets after an outage.
--
-- `renewed` is when anybody last renewed. A session renews three times in a lease; if nobody has for two of those three, nobody
-- could: the server was away, failed over, or its clock jumped. Then no session is to blame, and none may be rescued for one
-- more lease. (Waiting for a whole lease would be too late: those who renewed just before the outage began would be the only
-- ones to survive it.)
local OUTAGE_SHARE = 2 / 3
local function survive_outage(now, lease_ms)
  local renewed = tonumber(redis.call('HGET', cfg, 'renewed') or now)
  if now - renewed > lease_ms * OUTAGE_SHARE then redis.call('HSET', cfg, 'graceUntil', now + lease_ms) end
  -- A clock that jumped back would make leases last for ever: cut them to what they would be now.
  if renewed > now + 1000 then
    for _, session in ipairs(redis.call('ZRANGE', sessions, now + lease_ms + 1000, '+inf', 'BYSCORE', 'LIMIT', 0, 1000)) do
      redis.call('ZADD', sessions, now + lease_ms, session)
    end
    redis.call('HDEL', cfg, 'graceUntil')
  end
end

local function in_grace(now)
  return now < tonumber(redis.call('HGET', cfg, 'graceUntil') or 0)
end
