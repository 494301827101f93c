#!lua flags=allow-oom
-- note.lua: an active job reports: its progress (the last one counts) or a log line (the last `keep` lines are kept).
-- KEYS sessions ZSET, active HASH, jobs HASH, progress HASH, logs LIST
-- ARGV session, id, token, kind, value, keep
-- Returns 'OK', 'ALREADY' or 'LEASE_LOST'
if not redis.call('ZSCORE', sessions, session) then return 'LEASE_LOST' end
if token_apart(active .. session, id) ~= token then return 'ALREADY' end
local packed = redis.call('HGET', jobs, id)
local flags = packed:byte(1)
if math.floor(flags / 16) % 2 == 0 then redis.call('HSET', jobs, id, string.char(flags + 16) .. packed:sub(2)) end
if kind == 'progress' then
  redis.call('HSET', progress, id, value)
else
  redis.call('RPUSH', logs .. id, value)
  redis.call('LTRIM', logs .. id, -tonumber(keep), -1)
end
return 'OK'
