#!lua
-- roll.lua: writes the record of a minute into its ring and, at the end of an hour, that of the hour into its own. A process that lost
-- the lease changes nothing. Repeating it writes the same bytes.
-- KEYS writer STRING, rolled HASH, minutes STRING, hours STRING
-- ARGV token, series, minute, minuteAt, minuteRecord, minuteKeepMs, hourAt, hourRecord, hourKeepMs
-- minuteAt and hourAt: offsets in bytes; hourRecord is empty within an hour
-- Returns 'OK' or 'LOST'
if redis.call('GET', writer) ~= token then return 'LOST' end
redis.call('SETRANGE', minutes, minuteAt, minuteRecord)
redis.call('PEXPIRE', minutes, minuteKeepMs)
if hourRecord ~= '' then
  redis.call('SETRANGE', hours, hourAt, hourRecord)
  redis.call('PEXPIRE', hours, hourKeepMs)
end
redis.call('HSET', rolled, series, minute)
redis.call('PEXPIRE', rolled, hourKeepMs)
return 'OK'
