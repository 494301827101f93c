#!lua flags=allow-oom
-- release.lua: an attempt came to nothing; what it paid is given back.
-- KEYS state HASH, attempts HASH, budget HASH
-- KEYS chunks HASH, held ZSET, parts HASH, fill HASH, window HASH, progress STREAM, attention ZSET
-- ARGV id, attempt
-- Returns 'OK', 'GONE', or 'KEPT' when its chunk was committed after all: then its frames are the only copy
local upload = read_state()
if not upload then return 'GONE' end
local paid = redis.call('HGET', attempts, attempt)
if paid and paid:match('^%d+ 0 ') then return 'KEPT' end
if is_open(upload) then
  free(upload, attempt)
  shrink(upload)
else
  redis.call('HDEL', attempts, attempt)
end
return 'OK'
