#!lua flags=allow-oom
-- ask.lua: whether a job has ended, and how. Reads only, and little: for those who ask again and again (look.lua tells all).
-- KEYS jobs HASH, dead ZSET, ended ZSET, results HASH
-- ARGV id
-- Returns {'WAITING' | 'done' | 'cancelled' | 'dead' | 'UNKNOWN', how it ended and its result}
local TOMBSTONE = 255
local packed = packed_of(id)
if packed and packed:byte(1) ~= TOMBSTONE then
  return { redis.call('ZSCORE', dead, id) and 'dead' or 'WAITING', '' }
end
local result = redis.call('ZSCORE', ended, id) and redis.call('HGET', results, id)
if result then return { result:sub(1, 1) == 'd' and 'done' or 'cancelled', result } end
return { packed and 'cancelled' or 'UNKNOWN', '' }
