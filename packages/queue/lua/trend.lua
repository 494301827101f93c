#!lua flags=no-writes
-- trend.lua: when the letters of some causes died, per hour of the last day. Their order by time of death is kept anyway, so an hour costs two
-- searches in it, whatever the number of letters, and nothing at a burial.
-- KEYS deadGroup ZSET
-- ARGV prints, nowMs
-- prints: msgpack {fingerprint, …}
-- Returns {{letters that died 23 to 24 hours ago, …, within the last hour}, …}
local HOUR_MS = 3600000
local HOURS = 24
local answer = {}
for i, print in ipairs(cmsgpack.unpack(prints)) do
  answer[i] = {}
  for hour = 1, HOURS do
    local to = nowMs - (HOURS - hour) * HOUR_MS
    answer[i][hour] = redis.call('ZCOUNT', deadGroup .. print, '(' .. string.format('%.0f', to - HOUR_MS), string.format('%.0f', to))
  end
end
return answer
